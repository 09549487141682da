// Reading: what is right loads, and everything that can be wrong with the two files is a Status that names them.
#include "frontend/fx/fx.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "ir/ops/register_all.h"
#include "ir/safetensors.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::fx {
namespace {

using fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

Tensor Weight() { return SeededTensor({DType::kF32, {4, 5}, std::nullopt, Layout::kRowMajor}, 1); }

std::string Text(const std::string& fingerprint) {
  return absl::StrCat(R"(graph @g {
  param @fc.bias: f32[4] = [0.5, 1, -2, 3]
  param @fc.weight: f32[4,5] = data()",
                      fingerprint, R"()
  module @fc = linear(bias=@fc.bias, weight=@fc.weight)
  %x: f32[2,5] = placeholder
  %fc: f32[2,4] = call_module @fc(%x)
  output(%fc)
}
)");
}

class FxTest : public ::testing::Test {
 protected:
  FxTest() { ops::RegisterAll(ops_); }

  void SetUp() override {
    stem_ = absl::StrCat(::testing::TempDir(), "/", ::testing::UnitTest::GetInstance()->current_test_info()->name());
    good_text_ = Text(absl::StrFormat("%016x", Fingerprint(Weight())));
    std::ofstream(path()) << good_text_;
    ASSERT_OK(ir::WriteSafetensors(data_path(), {{"fc.weight", std::make_shared<Tensor>(Weight())}}));
  }

  std::string path() const { return stem_ + ".ir"; }
  std::string data_path() const { return stem_ + ".safetensors"; }

  std::string DataBytes() const {
    std::ifstream in(data_path(), std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  }
  void WriteData(const std::string& bytes) const { std::ofstream(data_path(), std::ios::binary) << bytes; }
  // A file of this header and as many bytes of data.
  void WriteHeader(const std::string& header, int data_bytes) const {
    const uint64_t size = header.size();
    WriteData(std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(data_bytes, 'x'));
  }

  ir::OpRegistry ops_;
  std::string stem_, good_text_;
};

TEST_F(FxTest, LoadsAndPrintsAsItWas) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> graph, Load(path(), ops_));
  EXPECT_EQ(ir::Print(*graph), good_text_);
  EXPECT_TRUE(graph->FindParameterOrNull("fc.weight")->tensor->SameBytes(Weight()));
}

TEST_F(FxTest, TensorsThatTheTextDoesNotNameAreLeft) {
  ASSERT_OK(ir::WriteSafetensors(data_path(), {{"fc.weight", std::make_shared<Tensor>(Weight())},
                                               {"unused", std::make_shared<Tensor>(Weight())}}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ir::Graph> graph, Load(path(), ops_));
  EXPECT_EQ(graph->parameters().size(), 2);
}

TEST_F(FxTest, NoDataNeedsNoFile) {
  std::ofstream(path()) << "graph @g {\n  %x: f32[2] = placeholder\n  output(%x)\n}\n";
  std::filesystem::remove(data_path());
  EXPECT_OK(Load(path(), ops_));
}

TEST_F(FxTest, MissingFiles) {
  std::filesystem::remove(data_path());
  EXPECT_THAT(Load(path(), ops_), StatusIs(absl::StatusCode::kNotFound, HasSubstr(data_path() + ": cannot be opened")));
  std::filesystem::create_directory(data_path());
  EXPECT_THAT(Load(path(), ops_), StatusIs(kInvalid, HasSubstr(data_path() + ": found no regular file")));
  std::filesystem::remove(data_path());
  std::filesystem::remove(path());
  EXPECT_THAT(Load(path(), ops_), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path() + ": cannot be opened")));
  EXPECT_THAT(Load("model.pt", ops_), StatusIs(kInvalid, HasSubstr("model.pt: wanted a file <stem>.ir")));
}

TEST_F(FxTest, MissingTensor) {
  ASSERT_OK(ir::WriteSafetensors(data_path(), {{"fc1.weight", std::make_shared<Tensor>(Weight())}}));
  EXPECT_THAT(Load(path(), ops_),
              StatusIs(kInvalid, AllOf(HasSubstr(data_path() + ": found no tensor 'fc.weight'"), HasSubstr(path()))));
}

TEST_F(FxTest, AnotherTensor) {
  const auto is_other =
      StatusIs(kInvalid, AllOf(HasSubstr(path() + ":3:3: the data of parameter @fc.weight"), HasSubstr(data_path())));
  Tensor changed = Weight();
  changed.data<float>()[19] += 1;
  ASSERT_OK(ir::WriteSafetensors(data_path(), {{"fc.weight", std::make_shared<Tensor>(changed)}}));
  EXPECT_THAT(Load(path(), ops_), is_other);
  ASSERT_OK(ir::WriteSafetensors(data_path(), {{"fc.weight", std::make_shared<Tensor>(Cast(Weight(), DType::kF16))}}));
  EXPECT_THAT(Load(path(), ops_), is_other);
  Tensor transposed = Weight();
  transposed.set_type({DType::kF32, {5, 4}, std::nullopt, Layout::kRowMajor});
  ASSERT_OK(ir::WriteSafetensors(data_path(), {{"fc.weight", std::make_shared<Tensor>(transposed)}}));
  EXPECT_THAT(Load(path(), ops_), is_other);
}

TEST_F(FxTest, WrongFingerprint) {
  std::ofstream(path()) << Text("0123456789abcdef");
  EXPECT_THAT(Load(path(), ops_), StatusIs(kInvalid, HasSubstr("@fc.weight (f32[4,5]) is not what the text")));
}

TEST_F(FxTest, DataCutAnywhere) {
  const std::string bytes = DataBytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    WriteData(bytes.substr(0, size));
    EXPECT_THAT(Load(path(), ops_), StatusIs(kInvalid, HasSubstr(data_path()))) << size << " bytes";
  }
  WriteData(bytes + "x");
  EXPECT_THAT(Load(path(), ops_), StatusIs(kInvalid, HasSubstr("describes 80 bytes of data, the file has 81")));
}

TEST_F(FxTest, TextCutAnywhere) {
  const std::string name = path();
  for (size_t size = 0; size + 2 < good_text_.size(); ++size) {
    std::ofstream(name) << good_text_.substr(0, size);
    EXPECT_THAT(Load(name, ops_), StatusIs(kInvalid, HasSubstr(name))) << size << " bytes";
  }
}

TEST_F(FxTest, WrongHeaders) {
  struct Case {
    const char* header;
    int data_bytes;
    const char* message;
  };
  const Case kCases[] = {
      {R"({"fc.weight":{"dtype":"F32","shape":[4,5],"data_offsets":[0,80]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[76,80]}})",
       80, "tensor 'b' begins at byte 76 of the data, wanted 80"},
      {R"({"fc.weight":{"dtype":"F32","shape":[4,5],"data_offsets":[0,160]}})", 80,
       "tensor 'fc.weight': bytes 0 to 160 for f32[4,5]"},
      {R"({"fc.weight":{"dtype":"F32","shape":[4,5],"data_offsets":[80,160]}})", 80,
       "tensor 'fc.weight' begins at byte 80 of the data, wanted 0"},
      {R"({"fc.weight":{"dtype":"F32","shape":[4,4294967296],"data_offsets":[0,80]}})", 80, "bytes 0 to 80"},
      {"[]", 0, "the header is not a JSON object"},
  };
  for (const Case& test : kCases) {
    WriteHeader(test.header, test.data_bytes);
    EXPECT_THAT(Load(path(), ops_), StatusIs(kInvalid, AllOf(HasSubstr(data_path()), HasSubstr(test.message))))
        << test.header;
  }
  WriteHeader(R"({"fc.weight":{"dtype":"BF16","shape":[4,5],"data_offsets":[0,40]}})", 40);
  EXPECT_THAT(Load(path(), ops_),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("tensor 'fc.weight': element type 'BF16'")));
  WriteData(std::string(7, '\xff') + '\x7f' + "{}");
  EXPECT_THAT(Load(path(), ops_), StatusIs(kInvalid, HasSubstr("a header of 9223372036854775807 bytes")));
}

TEST_F(FxTest, LargeParametersOfASmallTextAreNotAllocated) {
  for (const char* values : {"[0.5]", "seed(1)"}) {
    std::ofstream(path()) << "graph @g {\n  param @p: f32[4294967295] = " << values << "\n}\n";
    EXPECT_THAT(Load(path(), ops_), StatusIs(kInvalid, HasSubstr(path() + ":2:3"))) << values;
  }
}

// 2 GiB each, made up from a line of text: the limit stops before the machine's memory does.
TEST_F(FxTest, SeededParametersAreWithinTheBudget) {
  std::string text = "graph @g {\n";
  for (int i = 0; i < 300; ++i) absl::StrAppend(&text, "  param @p", i, ": f64[268435456] = seed(1)\n");
  std::ofstream(path()) << text << "}\n";
  ImportOptions options;
  options.max_memory_bytes = int64_t{1} << 30;
  EXPECT_THAT(Load(path(), ops_, options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr(path() + ":2:3: parameter @p0 needs 2147483648 bytes"), HasSubstr("in all"))));
}

TEST_F(FxTest, EachPartIsWithinTheBudget) {
  struct Case {
    std::string text;
    int64_t limit;
    std::string message;
  };
  const std::string sums =
      "graph @g {\n  %x: f32[1024,1] = placeholder\n  %y: f32[1,1024] = placeholder\n"
      "  %z: f32[1024,1024] = call_function add(%x, %y)\n  output(%z)\n}\n";
  const Case kCases[] = {
      {good_text_, 100, ": the file needs"},
      {good_text_, 1000, "the parsed text needs"},
      {good_text_, 64 * 300, data_path() + ": the parsed header needs"},
      {sums, 1 << 20, ":4:3: %z: f32[1024,1024] needs 4194304 bytes"},
      {"graph @g {\n  %x: f32[1048576] = placeholder\n  output(%x)\n}\n", 1 << 20, ":2:3: %x: f32[1048576] needs"},
  };
  for (const Case& test : kCases) {
    std::ofstream(path()) << test.text;
    ImportOptions options;
    options.max_memory_bytes = test.limit;
    EXPECT_THAT(Load(path(), ops_, options), StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(test.message)));
  }
  ASSERT_OK(ir::WriteSafetensors(data_path(), {{"fc.weight", std::make_shared<Tensor>(DType::kF32, Shape{1 << 18})}}));
  std::ofstream(path()) << good_text_;
  ImportOptions options;
  options.max_memory_bytes = 1 << 20;
  EXPECT_THAT(Load(path(), ops_, options),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("tensor 'fc.weight' needs 1048576 bytes")));
}

TEST_F(FxTest, NoMoreNodesThanTheLimit) {
  std::string text = "graph @g {\n";
  for (int64_t i = 0; i <= kMostImportedNodes; ++i) absl::StrAppend(&text, "%", i, ":u8[]=placeholder\n");
  std::ofstream(path()) << text << "}\n";
  EXPECT_THAT(Load(path(), ops_),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("found more than 1048576 nodes")));
}

TEST_F(FxTest, NonFiniteWeights) {
  const std::string wrong = absl::StrReplaceAll(good_text_, {{"[0.5, 1, -2, 3]", "[0.5, inf, -2, 3]"}});
  std::ofstream(path()) << wrong;
  EXPECT_THAT(
      Load(path(), ops_),
      StatusIs(kInvalid, HasSubstr(path() + ":2:3: parameter @fc.bias: found inf as element 1, wanted finite")));
  std::vector<std::string> warnings;
  ImportOptions options;
  options.allow_nonfinite = true;
  options.warnings = &warnings;
  EXPECT_OK(Load(path(), ops_, options));
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("parameter @fc.bias: found inf")));
}

TEST_F(FxTest, ErrorsInTheTextNameTheLine) {
  std::ofstream(path()) << absl::StrReplaceAll(good_text_, {{"call_module @fc(%x)", "call_function fft(%x)"}});
  EXPECT_THAT(Load(path(), ops_),
              StatusIs(kInvalid, AllOf(HasSubstr(path() + ":6:3"), HasSubstr("unknown operator 'fft'"))));
}

}  // namespace
}  // namespace fuselage::fx

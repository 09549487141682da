#include "ir/safetensors.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ir/testing/matchers.h"
#include "ir/testing/tiny_ops.h"

namespace fuselage::ir {
namespace {

using fuselage::testing::StatusIs;
using ::testing::HasSubstr;

std::string TempPath(absl::string_view name) { return absl::StrCat(::testing::TempDir(), "/", name); }

void WriteBytes(const std::string& path, const std::string& header, int data_bytes, int64_t header_size = -1) {
  const uint64_t size = header_size < 0 ? header.size() : header_size;
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), 8);
  out << header << std::string(data_bytes, 'x');
}

TEST(SafetensorsTest, GraphsRoundTrip) {
  OpRegistry ops;
  fuselage::testing::RegisterTinyOps(ops);
  Graph graph("g", ops);
  TensorType codes{DType::kI8, {5, 6}, PerAxis(0, {1, 2, 3, 4, 5}), Layout::kRowMajor};
  graph.AddParameter("codes", std::make_shared<Tensor>(SeededTensor(codes, 1)));
  graph.AddParameter("half", std::make_shared<Tensor>(SeededTensor({DType::kF16, {33}, {}, Layout::kRowMajor}, 2)));
  ASSERT_OK_AND_ASSIGN(Node * a, graph.AddGetAttr("a", "codes"));
  ASSERT_OK_AND_ASSIGN(Node * b, graph.AddGetAttr("b", "half"));
  ASSERT_OK(graph.AddOutput({a, b}));
  const std::string stem = TempPath("round_trip");
  ASSERT_OK(WriteGraph(stem, graph));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Graph> again, ReadGraph(stem, ops));
  EXPECT_EQ(Print(*again), Print(graph));
}

TEST(SafetensorsTest, RejectsWhatIsWrong) {
  struct Case {
    const char* header;
    int data_bytes;
    const char* message;
  };
  const Case kCases[] = {
      {"not json", 0, "not a JSON object"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "wanted dtype, shape and two data_offsets"},
      {R"({"a":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}})", 1, "element type 'F8'"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "bytes 0 to 4 for f32[2]"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "non-negative"},
      {R"({"a":{"dtype":"U8","shape":[9000000000000000,9000000000000000],"data_offsets":[0,4]}})", 4, "overflows"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "begins at byte 4 of the data, wanted 0"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6, "tensor 'b' begins at byte 2"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "describes 4 bytes of data, the file has 5"},
  };
  const std::string path = TempPath("wrong.safetensors");
  for (const Case& test : kCases) {
    WriteBytes(path, test.header, test.data_bytes);
    absl::StatusOr<TensorMap> tensors = ReadSafetensors(path);
    ASSERT_FALSE(tensors.ok()) << test.header;
    EXPECT_THAT(std::string(tensors.status().message()), HasSubstr(test.message));
    EXPECT_THAT(std::string(tensors.status().message()), HasSubstr(path));
  }
  WriteBytes(path, "{}", 0, int64_t{1} << 40);
  EXPECT_THAT(ReadSafetensors(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a header of")));
  std::ofstream(path) << "abc";
  EXPECT_THAT(ReadSafetensors(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 bytes")));
  EXPECT_THAT(ReadSafetensors(TempPath("absent")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot be opened")));
}

}  // namespace
}  // namespace fuselage::ir

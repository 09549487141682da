#include "ir/text.h"

#include <gtest/gtest.h>

#include "ir/testing/matchers.h"
#include "ir/testing/tiny_ops.h"

namespace fuselage::ir {
namespace {

using fuselage::testing::StatusIs;
using ::testing::HasSubstr;

class TextTest : public ::testing::Test {
 protected:
  TextTest() { fuselage::testing::RegisterTinyOps(ops_); }
  OpRegistry ops_;
};

constexpr absl::string_view kEverything = R"(graph @all {
  param @big: f32[5,5] = seed(3)
  param @bits: i8[2,2]<axis=0, scale=[0.1, 0.25], zp=[1, -2]> = [-128, 127, 0, 5]
  param @codes: u8[3]<scale=0.05, zp=128> = [0, 128, 255]
  param @half: f16[2] = [0.5, -65504]
  param @wide: i64[2] = [9007199254740993, -1]
  param @w: f32[1] = [1e-30]
  module @layer1.0.conv = scale(as=u8, factors=[1.0, 0.1, -inf], mode="say \"hi\"\n", names=["a", "b"], on=false, steps=[1, -2], weight=@w)
  %x: f32[4] = placeholder
  %k: u8[3]<scale=0.05, zp=128> = get_attr @codes
  %y: f32[4] = call_module @layer1.0.conv(%x, %x)
  %f: f32[4] = call_function scale(%x, %x, none, %y, mode="b")
  %z: f32[4] = call_method torch.relu(%f, slope=0.5) from(conv1, bn1)
  %h: (f32[2], f32[2]) = call_function halves(%z)
  %g: f32[2] = call_function getitem(%h, index=0)
  %n: f32[2,1,1,1]{nhwc} = placeholder
  %c: f32[8] = call_function cat(%x, %z)
  output(%g, %c, %n)
}
)";

TEST_F(TextTest, PrintOfParseIsTheText) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Graph> graph, Parse(kEverything, ops_));
  std::string sorted(kEverything);  // Parameters print sorted by name: "w" stands before "wide".
  const std::string w = "  param @w: f32[1] = [1e-30]\n", wide = "  param @wide: i64[2] = [9007199254740993, -1]\n";
  sorted.replace(sorted.find(wide), wide.size() + w.size(), w + wide);
  EXPECT_EQ(Print(*graph), sorted);
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Graph> again, Parse(sorted, ops_));
  EXPECT_EQ(Print(*again), sorted);
}

TEST_F(TextTest, LargeParametersNeedTheirData) {
  Graph graph("g", ops_);
  auto tensor = std::make_shared<Tensor>(SeededTensor({DType::kF32, {20}, {}, Layout::kRowMajor}, 1));
  graph.AddParameter("p", tensor);
  ASSERT_OK_AND_ASSIGN(Node * p, graph.AddGetAttr("a", "p"));
  ASSERT_OK(graph.AddOutput({p}));
  const std::string text = Print(graph);
  EXPECT_THAT(text, HasSubstr("param @p: f32[20] = data("));
  EXPECT_THAT(Parse(text, ops_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no data for parameter @p")));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Graph> again, Parse(text, ops_, "f", [&](absl::string_view) { return tensor; }));
  EXPECT_EQ(Print(*again), text);
  auto other = std::make_shared<Tensor>(SeededTensor(tensor->type(), 2));
  EXPECT_THAT(Parse(text, ops_, "f", [&](absl::string_view) { return other; }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not what the text was written with")));
}

struct ErrorCase {
  const char* line;  // The second line of the graph.
  const char* message;
};

TEST_F(TextTest, ErrorsNameThePlace) {
  const ErrorCase kCases[] = {
      {"  %y: f32[4] = call_function nope(%x)", "f.ir:3:3: unknown operator 'nope'"},
      {"  %y: f32[4] = call_function relu(%q)", "f.ir:3:35: %q is not defined before its use"},
      {"  %y: f32[5] = call_function relu(%x)", "f.ir:3:3: %y: type f32[5] is stated, f32[4] inferred"},
      {"  %y: f8[4] = call_function relu(%x)", "f.ir:3:9: unknown element type 'f8'"},
      {"  %y f32[4] = call_function relu(%x)", "f.ir:3:6: wanted ':'"},
      {"  %x: f32[4] = placeholder", "a second node %x"},
      {"  %y: f32[4] = call_function relu(%x, slope=1)", "of kind int, wanted float"},
      {"  %y: f32[4] = call_function relu(%x, slope=x1)", "wanted an attribute's value, found 'x1'"},
      {"  %y: f32[4] = call_function relu(%x, slope=0.5, slope=0.5)", "a second attribute 'slope'"},
      {"  %y: u8[1]<scale=0> = placeholder", "scale 0, wanted a normal float > 0"},
      {"  %y: u8[1]<scale=1, zp=256> = placeholder", "zero point 256 not in [0, 255]"},
      {"  %y: f32[-1] = placeholder", "negative dimension"},
      {"  %y: f32[99999999999,99999999999] = placeholder", "overflows"},
      {"  param @p: f32[2] = [1]", "1 values for a tensor of 2 elements"},
      {"  param @p: f32[99999999,99999] = [1]", "too large"},
      {"  module @m = scale(weight=@p)", "no parameter @p"},
      {"  module @m = scale(steps=[1, 2.0])", "a list of mixed kinds"},
      {"  %y: f32[4] = call_module @m(%x)", "no module @m"},
      {"  %y: f32[4] = get_attr @p", "no parameter @p"},
      {"  output(none)", "an operand is absent"},
  };
  for (const ErrorCase& test : kCases) {
    const std::string text = absl::StrCat("graph @g {\n  %x: f32[4] = placeholder\n", test.line, "\n  output(%x)\n}\n");
    EXPECT_THAT(Parse(text, ops_, "f.ir"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.message)))
        << test.line;
  }
  EXPECT_THAT(Parse("graph @g {", ops_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wanted '%'")));
  EXPECT_THAT(Parse("graph @g {\n}\n", ops_), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no output")));
  EXPECT_THAT(Parse("graph @g {\n  output()\n}\n", ops_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("%output: has no operand, wanted at least one")));
}

TEST_F(TextTest, EveryTruncationIsAnErrorAndNotACrash) {
  for (size_t size = 0; size + 3 < kEverything.size(); ++size) {
    EXPECT_FALSE(Parse(kEverything.substr(0, size), ops_).ok()) << size;
  }
}

}  // namespace
}  // namespace fuselage::ir

#include "harness/explain/graph_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/testing/matchers.h"

namespace fuselage::harness {
namespace {

using fuselage::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kGraph[] = R"(graph @tiny {
  param @c1.bias: f32[2] = [0.5, -1]
  param @c1.weight: f32[2,3,3,3] = data(0123456789abcdef)
  module @c1 = conv2d(activation="relu, (", padding=[1, 1, 1, 1], bias=@c1.bias, weight=@c1.weight)
  %x: f32[1,3,8,8] = placeholder
  %y: f32[1,2,8,8] = call_module @c1(%x) from(a, b)
  %z: f32[1,2,8,8] = call_method relu(%y)
  %q: u8[1,2,8,8]<scale=0.05, zp=3> = call_function quantize(%z, scales=[0.05], zero_points=[3])
  output(%q)
}
)";

GraphDifference Diff(const std::string& before, const std::string& after) {
  const auto difference = DiffGraphs({"a.ir", before}, {"b.ir", after});
  EXPECT_OK(difference);
  return difference.value_or(GraphDifference());
}

std::string With(const std::string& old, const std::string& now) {
  const std::string text = absl::StrReplaceAll(kGraph, {{old, now}});
  EXPECT_NE(text, kGraph) << old;
  return text;
}

TEST(GraphDiff, AGraphIsEqualToItself) {
  const GraphDifference difference = Diff(kGraph, kGraph);
  EXPECT_TRUE(difference.equal());
  EXPECT_EQ(difference.renamed, 0);
  EXPECT_EQ(difference.text, "--- a.ir: 5 nodes\n+++ b.ir: 5 nodes\n0 added, 0 removed, 0 changed, 0 renamed\n");
}

TEST(GraphDiff, NamesWhatChanged) {
  const struct {
    std::string old, now, text;
  } kCases[] = {
      {"padding=[1, 1, 1, 1]", "padding=[0, 1, 0, 1]", "~ %y\n    attribute padding: [1, 1, 1, 1] -> [0, 1, 0, 1]\n"},
      {"activation=\"relu, (\", ", "", "    attribute activation: \"relu, (\" -> (default)\n"},
      {"data(0123456789abcdef)", "data(0000000000000000)",
       "~ %y\n    parameter weight: f32[2,3,3,3] data(0123456789abcdef) -> f32[2,3,3,3] data(0000000000000000)\n"},
      {"[0.5, -1]", "[0.5, -2]", "    parameter bias: f32[2] [0.5, -1] -> f32[2] [0.5, -2]\n"},
      {"relu(%y)", "relu(%x)", "~ %z\n    operand 0: y -> x\n"},
      {"call_method relu", "call_function tanh", "~ %z\n    op: relu -> tanh\n"},
      {"<scale=0.05, zp=3>", "<scale=0.05, zp=4>",
       "~ %q\n    type: u8[1,2,8,8]<scale=0.05, zp=3> -> u8[1,2,8,8]<scale=0.05, zp=4>\n"},
      {"output(%q)", "output(%q, %z)", "~ %output\n    operand 1: (absent) -> z\n"},
  };
  for (const auto& test : kCases) {
    const GraphDifference difference = Diff(kGraph, With(test.old, test.now));
    EXPECT_FALSE(difference.equal()) << test.now;
    EXPECT_EQ(difference.changed, 1) << difference.text;
    EXPECT_THAT(difference.text, HasSubstr(test.text));
  }
}

TEST(GraphDiff, WhatIsCalledOtherwiseIsTheSame) {
  std::string renamed = absl::StrReplaceAll(kGraph, {{"%y", "%conv"}, {"%z", "%act"}, {"c1", "features.0"}});
  renamed = absl::StrReplaceAll(renamed, {{" from(a, b)", ""}});
  const GraphDifference difference = Diff(kGraph, renamed);
  EXPECT_TRUE(difference.equal()) << difference.text;
  EXPECT_EQ(difference.renamed, 2);
  EXPECT_THAT(difference.text, AllOf(HasSubstr("= %y is called %conv\n"), HasSubstr("= %z is called %act\n")));
}

TEST(GraphDiff, WhatIsNewAndWhatIsGone) {
  const std::string without = absl::StrReplaceAll(
      kGraph, {{"  %z: f32[1,2,8,8] = call_method relu(%y)\n", ""}, {"quantize(%z", "quantize(%y"}});
  const GraphDifference removed = Diff(kGraph, without);
  EXPECT_EQ(removed.removed, 1);
  EXPECT_EQ(removed.changed, 1);
  EXPECT_EQ(removed.added, 0);
  EXPECT_THAT(removed.text,
              AllOf(HasSubstr("- %z: f32[1,2,8,8] = relu(%y)\n"), HasSubstr("~ %q\n    operand 0: z -> y")));
  const GraphDifference added = Diff(without, kGraph);
  EXPECT_EQ(added.added, 1);
  EXPECT_THAT(added.text, HasSubstr("+ %z: f32[1,2,8,8] = relu(%y)\n"));
}

// Two that compute alike are told apart by what they read.
TEST(GraphDiff, EqualNodesMatchInOrder) {
  const auto chain = [](const std::string& prefix, int length) {
    std::string text = "graph @g {\n  %x: f32[4] = placeholder\n", last = "x";
    for (int i = 0; i < length; ++i) {
      const std::string name = absl::StrCat(prefix, i);
      absl::StrAppend(&text, "  %", name, ": f32[4] = call_function relu(%", last, ")\n");
      last = name;
    }
    return absl::StrCat(text, "  output(%", last, ")\n}\n");
  };
  EXPECT_TRUE(Diff(chain("a", 5), chain("b", 5)).equal());
  const GraphDifference longer = Diff(chain("a", 5), chain("b", 6));
  EXPECT_EQ(longer.renamed, 5);
  EXPECT_EQ(longer.added, 1);
  EXPECT_EQ(longer.changed, 1) << "the output reads another";
}

TEST(GraphDiff, BrokenTextIsNamedByItsLine) {
  const std::string kBroken[] = {"",
                                 "model { }",
                                 "graph @g {\n  %x = what\n}\n",
                                 "graph @g {\n  %x: f32[4] = placeholder",
                                 "graph @g {\n  %y: f32[1] = call_module @none(%x)\n}\n",
                                 "graph @g {\n  %x: f32[4] = placeholder\n  %x: f32[4] = placeholder\n}\n",
                                 "graph @g {\n  output(%x\n}\n",
                                 "graph @g {\n}\n}\n"};
  for (const std::string& text : kBroken) {
    EXPECT_THAT(DiffGraphs({"a.ir", kGraph}, {"b.ir", text}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("b.ir:")))
        << text;
  }
}

}  // namespace
}  // namespace fuselage::harness

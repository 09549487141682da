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

// A run of the passes "fold" and "fuse": y = conv2d(x) becomes one with relu, in `fused` or in `folded` already.
Results RunWith(const std::string& conv, const std::string& attributes, bool folded, bool fused) {
  Results results;
  results.add_passes()->set_name("fold");
  results.add_passes()->set_name("fuse");
  const auto add = [&](const std::string& name, const std::string& op, const std::string& target,
                       const std::string& input) {
    auto* node = results.mutable_history()->add_nodes();
    node->set_name(name);
    node->set_kind(op.empty() ? "placeholder" : "call_module");
    node->set_op(op);
    node->set_target(target);
    if (!input.empty()) node->add_inputs(input);
    if (op == "conv2d") node->add_weights("weight f32[2,3,3,3]");
  };
  add("x", "", "x", "");
  add(conv, "conv2d", "c1 = conv2d(" + attributes + ")", "x");
  add("z", "relu", "act = relu", conv);
  add("z", "conv2d", "c1 = conv2d(activation=\"relu\", " + attributes + ")", "x");
  const auto step = [&](const std::string& after, const std::vector<int>& nodes) {
    auto* one = results.mutable_history()->add_steps();
    one->set_after(after);
    *one->mutable_nodes() = {nodes.begin(), nodes.end()};
  };
  step("input", {0, 1, 2});
  if (folded) step("fold", {0, 3});
  if (fused) step("fuse", {0, 3});
  return results;
}

TEST(GraphDiff, HistoriesAreComparedPassByPass) {
  const Results before = RunWith("y", "padding=[1, 1, 1, 1]", false, true);
  Results::GraphDifferences found = DiffHistories(before, before);
  ASSERT_EQ(found.graphs_size(), 2);
  for (const auto& graph : found.graphs()) EXPECT_EQ(graph.nodes_size(), 0);

  // Another name is a difference without changes, another attribute one with them.
  found = DiffHistories(before, RunWith("conv", "padding=[1, 1, 1, 1]", false, true));
  ASSERT_EQ(found.graphs_size(), 2);
  ASSERT_EQ(found.graphs(0).nodes_size(), 1);
  EXPECT_EQ(found.graphs(0).nodes(0).before(), "y");
  EXPECT_EQ(found.graphs(0).nodes(0).now(), "conv");
  EXPECT_EQ(found.graphs(0).nodes(0).changes_size(), 0);
  found = DiffHistories(before, RunWith("y", "padding=[0, 0, 0, 0]", false, true));
  EXPECT_THAT(found.graphs(1).nodes(0).changes(),
              ::testing::ElementsAre("attribute padding: [1, 1, 1, 1] -> [0, 0, 0, 0]"));

  // "fold" left no graph of its own before: its graph is the one as read.
  found = DiffHistories(before, RunWith("y", "padding=[1, 1, 1, 1]", true, false));
  ASSERT_EQ(found.graphs_size(), 2);
  EXPECT_EQ(found.graphs(1).nodes_size(), 0) << "the last beside the last";
  found = DiffHistories(before, RunWith("y", "padding=[1, 1, 1, 1]", true, true));
  ASSERT_EQ(found.graphs_size(), 3);
  EXPECT_EQ(found.graphs(1).before(), 0);
  EXPECT_EQ(found.graphs(1).now(), 1);
  ASSERT_EQ(found.graphs(1).nodes_size(), 2);
  EXPECT_EQ(found.graphs(1).nodes(0).before(), "y");
  EXPECT_EQ(found.graphs(1).nodes(0).now(), "");
  EXPECT_EQ(found.graphs(1).nodes(1).now(), "z");

  // A pass that the other run lacks has no difference, nor has a run without graphs.
  Results other = before;
  other.mutable_passes(0)->set_name("another");
  EXPECT_EQ(DiffHistories(other, RunWith("y", "", true, true)).graphs_size(), 2);
  EXPECT_EQ(DiffHistories(Results(), before).graphs_size(), 0);
  other.mutable_history()->mutable_steps(0)->add_nodes(77);
  EXPECT_EQ(DiffHistories(other, other).graphs_size(), 2) << "an index that means nothing";
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

#include "ir/match/match.h"

#include <memory>

#include "gtest/gtest.h"
#include "ir/match/batch.h"
#include "ir/match/in_place.h"
#include "ir/match/sharing.h"
#include "ir/ops/register_all.h"
#include "ir/text.h"

namespace fuselage::match {
namespace {

using ir::Node;

constexpr char kGraph[] = R"(graph @t {
  param @c.w: f32[4,4,1,1] = seed(1)
  module @c = conv2d(weight=@c.w)
  module @shared = relu()
  %x: f32[1,4,2,2] = placeholder
  %conv: f32[1,4,2,2] = call_module @c(%x)
  %relu: f32[1,4,2,2] = call_module @shared(%conv)
  %relu2: f32[1,4,2,2] = call_module @shared(%x)
  %add: f32[1,4,2,2] = call_function add(%relu, %relu2, alpha=2.0)
  %sub: f32[1,4,2,2] = call_function sub(%relu2, %relu2)
  output(%add, %relu, %sub)
}
)";

class MatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ops::RegisterAll(ops_);
    auto graph = ir::Parse(kGraph, ops_);
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
  }
  Node* node(absl::string_view name) { return graph_->FindNodeOrNull(name); }

  ir::OpRegistry ops_;
  std::unique_ptr<ir::Graph> graph_;
};

TEST_F(MatchTest, MatchesAChainAndCaptures) {
  Node* conv = nullptr;
  Node* input = nullptr;
  const Pattern pattern =
      Op("relu").With(0, OneOf({"linear", "conv2d"}).OneUse().Capture(&conv).With(0, Any().Capture(&input)));
  EXPECT_TRUE(pattern.Match(node("relu")));
  EXPECT_EQ(conv, node("conv"));
  EXPECT_EQ(input, node("x"));
}

TEST_F(MatchTest, AFailedMatchCapturesNothing) {
  Node* captured = nullptr;
  // The capture stands before the condition that fails.
  EXPECT_FALSE(Op("relu").Capture(&captured).With(0, Op("linear")).Match(node("relu")));
  EXPECT_EQ(captured, nullptr);
  EXPECT_FALSE(Any().Capture(&captured).Match(nullptr));
  EXPECT_EQ(captured, nullptr);
}

TEST_F(MatchTest, OperandsBeyondTheLastDoNotMatch) {
  EXPECT_FALSE(Op("conv2d").With(1, Any()).Match(node("conv")));
  EXPECT_FALSE(Any().With(0, Any()).Match(node("x")));
}

TEST_F(MatchTest, EitherOrderTriesTheStatedOneFirst) {
  Node* a = nullptr;
  Node* b = nullptr;
  EXPECT_TRUE(Op("add").WithEitherOrder(Any().Capture(&a), Any().Capture(&b)).Match(node("add")));
  EXPECT_EQ(a, node("relu"));
  EXPECT_EQ(b, node("relu2"));
  const Pattern reads_conv = Op("relu").With(0, Op("conv2d"));
  EXPECT_TRUE(Op("add").WithEitherOrder(Any().Capture(&a), reads_conv.Capture(&b)).Match(node("add")));
  EXPECT_EQ(a, node("relu2"));
  EXPECT_EQ(b, node("relu"));
  EXPECT_FALSE(Op("add").WithEitherOrder(reads_conv, reads_conv).Match(node("add")));
}

TEST_F(MatchTest, Conditions) {
  EXPECT_TRUE(Kind(ir::NodeKind::kPlaceholder).Match(node("x")));
  EXPECT_FALSE(Kind(ir::NodeKind::kPlaceholder).Match(node("conv")));
  EXPECT_TRUE(Op("add").Attr("alpha", 2.0).Match(node("add")));
  EXPECT_FALSE(Op("add").Attr("alpha", 2).Match(node("add")));      // 2 is not 2.0.
  EXPECT_TRUE(Op("conv2d").Attr("groups", 1).Match(node("conv")));  // A default.
  EXPECT_FALSE(Any().Attr("groups", 1).Match(node("add")));
  EXPECT_FALSE(Any().Attr("groups", 1).Match(node("x")));
  EXPECT_FALSE(Op("relu").OneUse().Match(node("relu")));
  EXPECT_TRUE(Any().Where([](const Node& n) { return n.name() == "sub"; }).Match(node("sub")));
}

TEST_F(MatchTest, SharingIsCheckedAtBothLevels) {
  EXPECT_EQ(SharedBesides(*node("conv"), *node("relu")), "");
  EXPECT_EQ(SharedBesides(*node("relu"), *node("add")), "%relu is a graph output");
  EXPECT_EQ(SharedBesides(*node("x"), *node("conv")), "%x is also read by %relu2");
  EXPECT_EQ(SharedModule(*node("conv")), "");
  EXPECT_EQ(SharedModule(*node("relu")), "module @shared is also called by %relu2");
  EXPECT_EQ(SharedModule(*node("add")), "");

  node("add")->set_operand(1, node("relu"));
  EXPECT_EQ(SharedBesides(*node("relu2"), *node("sub")), "%relu2 is read twice by %sub");
  node("sub")->set_operand(0, node("x"));
  EXPECT_EQ(SharedBesides(*node("relu2"), *node("sub")), "module @shared is also called by %relu");
}

TEST(InPlaceTest, Spellings) {
  for (const char* target : {"relu_", "add_", "operator.iadd", "operator.imul"}) {
    EXPECT_TRUE(IsInPlace(target)) << target;
  }
  for (const char* target : {"relu", "add", "operator.add", "__iter__", ""}) {
    EXPECT_FALSE(IsInPlace(target)) << target;
  }
}

TEST(FollowsBatch, WhatComesFromInputsOrAnExpandByTheBatch) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  const auto graph = ir::Parse(R"(graph @t {
  param @p: f32[1,4] = seed(1)
  %x: f32[1,4] = placeholder
  %p: f32[1,4] = get_attr @p
  %relu: f32[1,4] = call_function relu(%p)
  %rows: f32[1,4] = call_function expand(%relu, batch=1, shape=[-1, -1])
  %fixed: f32[1,4] = call_function expand(%relu, shape=[-1, -1])
  %sum: f32[1,4] = call_function add(%x, %relu)
  output(%rows, %fixed, %sum)
}
)",
                               ops);
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const char* name : {"x", "rows", "sum"}) EXPECT_TRUE(FollowsBatch(*(*graph)->FindNodeOrNull(name))) << name;
  for (const char* name : {"p", "relu", "fixed"}) EXPECT_FALSE(FollowsBatch(*(*graph)->FindNodeOrNull(name))) << name;
}

}  // namespace
}  // namespace fuselage::match

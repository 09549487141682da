#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/testing/matchers.h"
#include "ir/testing/tiny_ops.h"
#include "ir/text.h"

namespace fuselage::ir {
namespace {

using fuselage::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GraphTest : public ::testing::Test {
 protected:
  GraphTest() { fuselage::testing::RegisterTinyOps(ops_); }

  std::unique_ptr<Graph> ParseOrDie(absl::string_view text) {
    absl::StatusOr<std::unique_ptr<Graph>> graph = Parse(text, ops_);
    EXPECT_OK(graph);
    return graph.ok() ? *std::move(graph) : nullptr;
  }

  OpRegistry ops_;
};

constexpr absl::string_view kDiamond = R"(graph @g {
  %x: f32[4] = placeholder
  %a: f32[4] = call_function relu(%x)
  %b: f32[4] = call_method relu(%x)
  %c: f32[4] = call_function add(%a, %b)
  %d: f32[4] = call_function add(%c, %c)
  output(%d)
}
)";

TEST_F(GraphTest, UsesAndUsers) {
  auto g = ParseOrDie(kDiamond);
  Node* x = g->FindNodeOrNull("x");
  Node* c = g->FindNodeOrNull("c");
  EXPECT_THAT(x->users(), ElementsAre(g->FindNodeOrNull("a"), g->FindNodeOrNull("b")));
  EXPECT_EQ(c->num_uses(), 2);
  EXPECT_THAT(c->users(), ElementsAre(g->FindNodeOrNull("d")));
  EXPECT_EQ(c->uses()[1].index, 1);
}

TEST_F(GraphTest, ReplaceAllUsesMovesThemInOrder) {
  auto g = ParseOrDie(kDiamond);
  Node* a = g->FindNodeOrNull("a");
  Node* c = g->FindNodeOrNull("c");
  c->ReplaceAllUsesWith(a);
  EXPECT_EQ(c->num_uses(), 0);
  EXPECT_EQ(a->num_uses(), 3);
  g->Erase(c);
  EXPECT_OK(g->Verify());
  EXPECT_EQ(g->FindNodeOrNull("c"), nullptr);
  EXPECT_EQ(g->FindNodeOrNull("d")->operand(1), a);
}

// The output's operands move in memory as they grow; the lists of uses must follow.
TEST_F(GraphTest, AppendOutputKeepsListsSymmetric) {
  auto g = ParseOrDie(kDiamond);
  for (int i = 0; i < 20; ++i) {
    g->AppendOutput(g->FindNodeOrNull(i % 3 == 0 ? "d" : "c"));
    ASSERT_OK(g->Verify());
  }
  EXPECT_EQ(g->FindNodeOrNull("d")->num_uses(), 8);
  EXPECT_EQ(g->FindNodeOrNull("c")->num_uses(), 15);
  g->Erase(g->output());
  EXPECT_EQ(g->FindNodeOrNull("d")->num_uses(), 0);
}

// What a sweep would remove is counted as it comes and goes; Verify recounts.
TEST_F(GraphTest, CountsWhatIsUnused) {
  auto g = ParseOrDie(R"(graph @g {
  param @w: f32[1] = [2]
  module @m = scale(weight=@w)
  %x: f32[4] = placeholder
  %unused: f32[4] = placeholder
  %k: f32[1] = get_attr @w
  %y: f32[4] = call_module @m(%x)
  output(%y)
}
)");
  EXPECT_EQ(g->num_dead_nodes(), 1);  // %k; placeholders stay.
  EXPECT_EQ(g->EraseUncalledModules(), 0);
  EXPECT_EQ(g->Clone()->num_dead_nodes(), 1);
  Node* y = g->FindNodeOrNull("y");
  y->ReplaceAllUsesWith(g->FindNodeOrNull("x"));
  EXPECT_EQ(g->num_dead_nodes(), 2);
  EXPECT_OK(g->Verify());
  g->output()->set_operand(0, y);
  EXPECT_EQ(g->num_dead_nodes(), 1);
  g->output()->set_operand(0, g->FindNodeOrNull("x"));
  g->Erase(y);
  g->Erase(g->FindNodeOrNull("k"));
  EXPECT_EQ(g->num_dead_nodes(), 0);
  EXPECT_EQ(g->EraseUncalledModules(), 1);
  EXPECT_EQ(g->EraseUnusedParameters(), 1);
  EXPECT_OK(g->Verify());
  EXPECT_TRUE(g->modules().empty() && g->parameters().empty());
}

TEST_F(GraphTest, SetOperandKeepsListsSymmetric) {
  auto g = ParseOrDie(kDiamond);
  g->FindNodeOrNull("d")->set_operand(0, g->FindNodeOrNull("a"));
  EXPECT_OK(g->Verify());
  EXPECT_TRUE(g->FindNodeOrNull("c")->has_one_use());
}

TEST_F(GraphTest, NamesBecomeUniqueAndClean) {
  Graph g("a b", ops_);
  EXPECT_EQ(g.name(), "a_b");
  const TensorType type{DType::kF32, {1}, {}, Layout::kRowMajor};
  EXPECT_EQ((*g.AddPlaceholder("x", type))->name(), "x");
  EXPECT_EQ((*g.AddPlaceholder("x", type))->name(), "x_1");
  EXPECT_EQ((*g.AddPlaceholder("x:0", type))->name(), "x_0");
  EXPECT_EQ((*g.AddPlaceholder("x_1", type))->name(), "x_1_1");
  EXPECT_EQ((*g.AddPlaceholder("", type))->name(), "_");
}

TEST_F(GraphTest, AFailedAddLeavesNoTrace) {
  auto g = ParseOrDie(kDiamond);
  const std::string before = Print(*g);
  Node* x = g->FindNodeOrNull("x");
  EXPECT_THAT(g->AddFunction("y", "nope", {x}), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'nope'")));
  EXPECT_THAT(g->AddFunction("y", "add", {x}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("%y: add: operand 1 (other) is missing")));
  EXPECT_THAT(g->AddFunction("y", "relu", {x, x}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes 1 operands at most, found 2")));
  EXPECT_THAT(g->AddFunction("y", "relu", {x}, {{"slope", 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is of kind int, wanted float")));
  EXPECT_THAT(g->AddFunction("y", "relu", {x}, {{"slop", 1.0}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no attribute 'slop'")));
  EXPECT_THAT(g->AddModuleCall("y", "m", {x}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no module @m")));
  EXPECT_EQ(Print(*g), before);
  EXPECT_EQ(x->num_uses(), 2);
  EXPECT_OK(g->Verify());
}

TEST_F(GraphTest, DefaultsAreDropped) {
  auto g = ParseOrDie(kDiamond);
  ASSERT_OK_AND_ASSIGN(Node * y, g->AddFunction("y", "relu", {g->FindNodeOrNull("x")}, {{"slope", 0.0}}));
  EXPECT_EQ(PrintNode(*y), "%y: f32[4] = call_function relu(%x)");
  EXPECT_EQ(y->attribute("slope").as_float(), 0.0);
}

constexpr absl::string_view kShared = R"(graph @g {
  param @p: f32[1] = [2]
  param @q: f32[1] = [3]
  module @m = scale(weight=@p)
  %x: f32[4] = placeholder
  %a: f32[4] = call_module @m(%x)
  %b: f32[4] = call_module @m(%a, %x)
  output(%b)
}
)";

TEST_F(GraphTest, ModulesKnowTheirCallSites) {
  auto g = ParseOrDie(kShared);
  Module* m = g->FindModuleOrNull("m");
  EXPECT_EQ(m->call_sites.size(), 2);
  EXPECT_EQ(g->FindParameterOrNull("p")->uses, 1);
  EXPECT_EQ(g->ParameterOfOrNull(*g->FindNodeOrNull("a"), "weight")->At(0), 2);
  EXPECT_EQ(g->ParameterOfOrNull(*g->FindNodeOrNull("a"), "bias"), nullptr);

  ASSERT_OK(g->UpdateModule(m, "scale", {{"mode", "b"}}, {{"weight", "q"}, {"bias", "p"}}));
  EXPECT_EQ(g->FindParameterOrNull("q")->uses, 1);
  EXPECT_OK(g->Verify());
  EXPECT_THAT(g->UpdateModule(m, "scale", {}, {{"weigth", "q"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no parameter 'weigth'")));
  EXPECT_THAT(g->UpdateModule(m, "relu", {}, {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes 1")));
  EXPECT_EQ(m->op->name, "scale");
  EXPECT_OK(g->Verify());
}

TEST_F(GraphTest, OperandTypesFollowTheSchema) {
  auto g = ParseOrDie(kShared);
  const std::vector<const Type*> types = g->OperandTypes(*g->FindNodeOrNull("b"));
  ASSERT_EQ(types.size(), 4);
  EXPECT_EQ(types[1]->tensor().shape, Shape{1});
  EXPECT_EQ(types[2], nullptr);
  EXPECT_EQ(types[3]->tensor().shape, Shape{4});
}

TEST_F(GraphTest, SetBatchInfersAgain) {
  auto g = ParseOrDie(kShared);
  ASSERT_OK(g->SetBatch(7));
  EXPECT_EQ(g->FindNodeOrNull("b")->tensor_type().shape, Shape{7});
  EXPECT_OK(g->Verify());
}

TEST_F(GraphTest, AppendOutputTaps) {
  auto g = ParseOrDie(kShared);
  g->AppendOutput(g->FindNodeOrNull("a"));
  EXPECT_EQ(PrintNode(*g->output()), "output(%b, %a)");
  EXPECT_OK(g->Verify());
}

TEST_F(GraphTest, VerifyFindsUseBeforeDefinition) {
  auto g = ParseOrDie(kDiamond);
  g->FindNodeOrNull("a")->set_operand(0, g->FindNodeOrNull("c"));
  EXPECT_THAT(g->Verify(), StatusIs(absl::StatusCode::kInternal, HasSubstr("%c is not defined before it")));
}

TEST_F(GraphTest, VerifyFindsStaleTypes) {
  auto g = ParseOrDie(R"(graph @g {
  %x: f32[4] = placeholder
  %y: f32[6] = placeholder
  %a: f32[4] = call_function relu(%x)
  output(%a, %y)
}
)");
  g->FindNodeOrNull("a")->set_operand(0, g->FindNodeOrNull("y"));
  EXPECT_THAT(g->Verify(), StatusIs(absl::StatusCode::kInternal, HasSubstr("has type f32[4], inferred f32[6]")));
}

TEST_F(GraphTest, CloneIsIndependent) {
  auto g = ParseOrDie(kShared);
  auto clone = g->Clone();
  ASSERT_OK(clone->Verify());
  EXPECT_EQ(Print(*clone), Print(*g));
  clone->FindNodeOrNull("b")->set_operand(0, clone->FindNodeOrNull("x"));
  EXPECT_NE(Print(*clone), Print(*g));
  EXPECT_OK(g->Verify());
}

TEST_F(GraphTest, TuplesThroughGetitem) {
  auto g = ParseOrDie(R"(graph @g {
  %x: f32[4] = placeholder
  %h: (f32[2], f32[2]) = call_function halves(%x)
  %a: f32[2] = call_function getitem(%h, index=1)
  output(%a)
}
)");
  EXPECT_THAT(g->AddFunction("r", "relu", {g->FindNodeOrNull("h")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wanted a tensor")));
}

TEST_F(GraphTest, OneHundredThousandNodesInLinearTime) {
  Graph g("long", ops_);
  Node* x = *g.AddPlaceholder("x", TensorType{DType::kF32, {1}, {}, Layout::kRowMajor});
  Node* y = x;
  for (int i = 0; i < 100000; ++i) y = *g.AddFunction("y", "add", {y, x});
  ASSERT_OK(g.AddOutput({y}));
  ASSERT_OK(g.Verify());
  EXPECT_EQ(x->num_uses(), 100001);
  Node* z = *g.AddPlaceholder("z", x->tensor_type(), x);
  x->ReplaceAllUsesWith(z);
  EXPECT_EQ(z->num_uses(), 100001);
  EXPECT_OK(g.Verify());
}

}  // namespace
}  // namespace fuselage::ir

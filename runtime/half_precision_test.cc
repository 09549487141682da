#include "runtime/half_precision.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interpreter/interpreter.h"
#include "ir/base/comparison.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "runtime/testing.h"

namespace fuselage::runtime {
namespace {

using ir::Node;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

Tensor Seeded(Shape shape, uint64_t seed) {
  return SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, seed);
}

class HalfPrecisionTest : public ::testing::Test {
 protected:
  HalfPrecisionTest() { ops::RegisterAll(ops_); }
  ir::OpRegistry ops_;
};

// Weights of functions and of modules, a residual, an absent bias, views.
const ir::Graph& Network(GraphBuilder& g) {
  const AttributeMap padded = {{"padding", Ints{1, 1, 1, 1}}, {"activation", "relu"}};
  Node* x = g.Input({2, 3, 9, 9});
  Node* a = g.Call("conv2d", {x, g.Constant({8, 3, 3, 3}), g.Constant({8})}, padded);
  Node* b = g.Call("conv2d", {a, g.Constant({8, 8, 3, 3}), nullptr, a}, padded);
  Node* pooled = g.Call("flatten", {g.Call("global_avg_pool", {b})}, {{"start_dim", 1}});
  Node* logits = g.CallModule("linear", {pooled}, {}, {{"weight", Seeded({10, 8}, 1)}, {"bias", Seeded({10}, 2)}});
  return g.Output({logits, a});
}

TEST_F(HalfPrecisionTest, IsF16BetweenItsBorders) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = Network(g);
  ASSERT_OK_AND_ASSIGN(const auto half, HalfPrecision(graph));
  ASSERT_OK(half->Verify());
  for (const auto& [name, parameter] : graph.parameters()) {
    const ir::Parameter* found = half->FindParameterOrNull(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_TRUE(found->tensor->SameBytes(Cast(*parameter.tensor, DType::kF16))) << name;
  }
  for (const Node* node : graph.Snapshot()) {
    if (node->kind() == ir::NodeKind::kOutput) continue;
    const Node* found = half->FindNodeOrNull(node->name());
    ASSERT_NE(found, nullptr) << node->name();
    EXPECT_EQ(found->op(), node->op()) << node->name();
    TensorType wanted = node->tensor_type();
    if (node->kind() != ir::NodeKind::kPlaceholder) wanted.dtype = DType::kF16;
    EXPECT_EQ(found->tensor_type(), wanted) << node->name();
  }
  EXPECT_EQ(half->num_nodes(), graph.num_nodes() + 3) << "a cast for the input and each output";
  ASSERT_EQ(half->output()->num_operands(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(half->output()->operand(i)->tensor_type(), graph.output()->operand(i)->tensor_type());
  }
}

TEST_F(HalfPrecisionTest, ValuesAreNear) {
  GraphBuilder g(ops_);
  const ir::Graph& graph = Network(g);
  ASSERT_OK_AND_ASSIGN(const auto half, HalfPrecision(graph));
  const Tensor x = Seeded({2, 3, 9, 9}, 3);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(graph, {x}));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, interpreter::Run(*half, {x}));
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(found[i].type(), wanted[i].type());
    const Difference difference = Compare(wanted[i], found[i]);
    EXPECT_LE(difference.max_abs_error, std::ldexp(difference.magnitude, -8));
    EXPECT_GT(difference.max_abs_error, 0);
  }
}

TEST_F(HalfPrecisionTest, SaysWhatBecomesInfinite) {
  GraphBuilder g(ops_);
  const Tensor large = Tensor::Of<float>({4}, {65519, -65520, INFINITY, 1e9f});
  const ir::Graph& graph = g.Output(
      {g.Call("add", {g.Input({4}), g.Constant(large)}), g.Call("mul", {g.Input({4}), g.Constant(Seeded({4}, 1))})});
  std::vector<std::string> warnings;
  ASSERT_OK(HalfPrecision(graph, &warnings));
  EXPECT_THAT(warnings, ::testing::ElementsAre("@c: 2 of 4 values are infinite in FP16, element 1, -65520, first"));
}

TEST_F(HalfPrecisionTest, OtherTypesStay) {
  GraphBuilder g(ops_);
  Node* integers = g.Input({DType::kI32, {4}, std::nullopt, Layout::kRowMajor});
  Node* floats = g.Call("to", {integers}, {{"dtype", DType::kF32}});
  Node* x = g.Input({4});
  const ir::Graph& graph = g.Output({g.Call("add", {integers, integers}), g.Call("add", {floats, x})});
  ASSERT_OK_AND_ASSIGN(const auto half, HalfPrecision(graph));
  ASSERT_OK(half->Verify());
  const Tensor fractions = Seeded({4}, 1), rounded = Cast(fractions, DType::kF16);
  ASSERT_OK_AND_ASSIGN(const auto found,
                       interpreter::Run(*half, {Tensor::Of<int32_t>({4}, {0, 0, 100000, 2049}), fractions}));
  EXPECT_EQ(found[0].values<int32_t>(), (std::vector<int32_t>{0, 0, 200000, 4098}));
  EXPECT_EQ(found[1].dtype(), DType::kF32);
  EXPECT_EQ(found[1].At(0), rounded.At(0));
  EXPECT_EQ(found[1].At(1), rounded.At(1));
  EXPECT_TRUE(std::isinf(found[1].At(2))) << "beyond f16";
  EXPECT_NEAR(found[1].At(3), 2048, 2);
}

TEST_F(HalfPrecisionTest, DeclinesCodes) {
  GraphBuilder g(ops_);
  Node* codes = g.Input({DType::kU8, {4}, PerTensor(0.5f), Layout::kRowMajor});
  const auto half = HalfPrecision(g.Output({codes}));
  EXPECT_THAT(half, testing::StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("wanted no codes")));
}

// A network that was made FP16 is the same again, with casts on its borders and weights rounded to f16.
TEST_F(HalfPrecisionTest, SingleIsTheOtherWay) {
  GraphBuilder g(ops_);
  Node* x = g.Input({DType::kF16, {4}, std::nullopt, Layout::kRowMajor});
  Node* wide = g.Call("to", {x}, {{"dtype", DType::kF32}});
  Node* narrow = g.Call("to", {g.Call("exp", {wide})}, {{"dtype", DType::kF16}});
  const Tensor weights = Cast(Seeded({4}, 1), DType::kF16);
  Node* sum = g.Call("add", {narrow, g.Constant(weights)});
  const ir::Graph& graph = g.Output({sum, g.Call("argmax", {sum}, {{"dim", 0}})});
  EXPECT_EQ(CountHalfCalls(graph), 2);
  ASSERT_OK_AND_ASSIGN(const auto single, SinglePrecision(graph));
  ASSERT_OK(single->Verify());
  EXPECT_EQ(CountHalfCalls(*single), 0);
  EXPECT_EQ(single->placeholders()[0]->tensor_type(), x->tensor_type());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(single->output()->operand(i)->tensor_type(), graph.output()->operand(i)->tensor_type());
  }
  for (const auto& [name, parameter] : single->parameters()) {
    EXPECT_TRUE(parameter.tensor->SameBytes(Cast(weights, DType::kF32))) << name;
  }
  const Tensor input = Cast(Seeded({4}, 2), DType::kF16);
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, interpreter::Run(*single, {input}));
  for (int i = 0; i < 4; ++i) {
    const float wanted = std::exp(static_cast<float>(input.At(i))) + static_cast<float>(weights.At(i));
    EXPECT_EQ(found[0].At(i), ToFloat(ToHalf(wanted))) << "rounded once, at the output";
  }
}

TEST_F(HalfPrecisionTest, CastsAreNoCalls) {
  GraphBuilder g(ops_);
  Node* x = g.Input({DType::kF16, {4}, std::nullopt, Layout::kRowMajor});
  Node* y = g.Call("relu", {g.Call("to", {x}, {{"dtype", DType::kF32}})});
  EXPECT_EQ(CountHalfCalls(g.Output({g.Call("to", {y}, {{"dtype", DType::kF16}})})), 0);
}

}  // namespace
}  // namespace fuselage::runtime

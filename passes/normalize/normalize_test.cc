#include "passes/normalize/normalize.h"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/normalize/constants.h"
#include "passes/normalize/in_place.h"

namespace fuselage::normalize {
namespace {

TEST(InPlaceTest, Spellings) {
  for (const char* target : {"relu_", "add_", "operator.iadd", "operator.imul"}) {
    EXPECT_TRUE(IsInPlace(target)) << target;
  }
  for (const char* target : {"relu", "add", "operator.add", "__iter__", ""}) {
    EXPECT_FALSE(IsInPlace(target)) << target;
  }
}

TEST(ConstantsTest, TransposedMovesTheAxis) {
  TensorType type{DType::kI8, {2, 3}, PerAxis(1, {0.5f, 0.25f, 1}), Layout::kRowMajor};
  auto codes = std::make_shared<Tensor>(type);
  for (int i = 0; i < 6; ++i) codes->data<int8_t>()[i] = static_cast<int8_t>(i);
  const Constant transposed = Transposed(Constant{codes, "w", "w", true});
  EXPECT_EQ(transposed.tensor->shape(), (Shape{3, 2}));
  EXPECT_EQ(transposed.tensor->type().quant, PerAxis(0, {0.5f, 0.25f, 1}));
  EXPECT_THAT(transposed.tensor->values<int8_t>(), ::testing::ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_FALSE(transposed.as_stored);
}

TEST(NormalizeTest, IsLinearInTheGraph) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ir::Graph graph("deep", ops);
  graph.AddParameter("w", std::make_shared<Tensor>(Tensor::Of<float>({1, 1, 1, 1}, {2})));
  ASSERT_OK_AND_ASSIGN(ir::Node * w, graph.AddGetAttr("w", "w"));
  ASSERT_OK_AND_ASSIGN(ir::Node * x, graph.AddPlaceholder("x", Tensor(DType::kF32, {1, 1, 1, 1}).type(), w));
  constexpr int kBlocks = 25000;
  for (int i = 0; i < kBlocks; ++i) {
    ASSERT_OK_AND_ASSIGN(x, graph.AddFunction("conv", "conv2d", {x, w}));
    ASSERT_OK_AND_ASSIGN(x, graph.AddMethod("relu", "relu_", {x}));
    ASSERT_OK_AND_ASSIGN(x, graph.AddFunction("add", "torch.add", {x, x}));
    ASSERT_OK_AND_ASSIGN(x, graph.AddFunction("identity", "identity", {x}));
  }
  ASSERT_OK(graph.AddOutput({x}));
  passes::Remarks remarks;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK_AND_ASSIGN(const bool changed, Normalize({}).Run(graph, remarks));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_TRUE(changed);
  EXPECT_EQ(remarks.CountApplied(), 4 * kBlocks);
  EXPECT_EQ(graph.num_nodes(), 3 * kBlocks + 2);
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 20) << "a hundred thousand nodes take well under a second, unless the walk is quadratic";
}

}  // namespace
}  // namespace fuselage::normalize

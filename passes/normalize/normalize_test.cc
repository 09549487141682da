#include "passes/normalize/normalize.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "ir/text.h"
#include "passes/normalize/constants.h"

namespace fuselage::normalize {
namespace {

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
  const auto build = [&](int64_t blocks) {
    auto graph = std::make_unique<ir::Graph>("deep", ops);
    graph->AddParameter("w", std::make_shared<Tensor>(Tensor::Of<float>({1, 1, 1, 1}, {2})));
    ir::Node* w = *graph->AddGetAttr("w", "w");
    ir::Node* x = *graph->AddPlaceholder("x", Tensor(DType::kF32, {1, 1, 1, 1}).type(), w);
    for (int64_t i = 0; i < blocks; ++i) {
      x = *graph->AddFunction("conv", "conv2d", {x, w});
      x = *graph->AddMethod("relu", "relu_", {x});
      x = *graph->AddFunction("add", "torch.add", {x, x});
      x = *graph->AddFunction("identity", "identity", {x});
    }
    EXPECT_OK(graph->AddOutput({x}));
    return graph;
  };
  const auto run = [](ir::Graph& graph) {
    const int64_t blocks = (graph.num_nodes() - 3) / 4;
    passes::Remarks remarks;
    EXPECT_OK(Normalize({}).Run(graph, remarks));
    EXPECT_EQ(remarks.CountApplied(), 4 * blocks);
    EXPECT_EQ(graph.num_nodes(), 3 * blocks + 2);
  };
  EXPECT_LT(fuselage::testing::GrowthOverCopying(2500, build, run), fuselage::testing::kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::normalize

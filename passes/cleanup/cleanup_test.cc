#include "passes/cleanup/cleanup.h"

#include <memory>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"

namespace fuselage::cleanup {
namespace {

TEST(CleanupTest, IsLinearInTheGraph) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  const auto build = [&](int64_t blocks) {
    auto graph = std::make_unique<ir::Graph>("deep", ops);
    graph->AddParameter("one", std::make_shared<Tensor>(Tensor::Scalar<float>(1)));
    ir::Node* x = *graph->AddPlaceholder("x", Tensor(DType::kF32, {2}).type());
    for (int64_t i = 0; i < blocks; ++i) {
      ir::Node* one = *graph->AddGetAttr("one", "one");
      x = *graph->AddFunction("identity", "identity", {*graph->AddFunction("mul", "mul", {x, one})});
      EXPECT_OK(graph->AddFunction("dead", "relu", {x}));
    }
    EXPECT_OK(graph->AddOutput({x}));
    return graph;
  };
  const auto run = [](ir::Graph& graph) {
    passes::Remarks remarks;
    EXPECT_OK(Cleanup({}).Run(graph, remarks));
    EXPECT_EQ(graph.num_nodes(), 2);
    EXPECT_TRUE(graph.parameters().empty());
  };
  EXPECT_LT(fuselage::testing::GrowthOverCopying(2500, build, run), fuselage::testing::kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::cleanup

#include "ir/testing/scaling.h"

#include <gtest/gtest.h>

#include "ir/testing/matchers.h"
#include "ir/testing/tiny_ops.h"

namespace fuselage::testing {
namespace {

TEST(GrowthOverCopyingTest, TellsLinearFromQuadratic) {
  ir::OpRegistry ops;
  RegisterTinyOps(ops);
  const auto build = [&](int64_t n) {
    auto graph = std::make_unique<ir::Graph>("chain", ops);
    ir::Node* x = *graph->AddPlaceholder("x", Tensor(DType::kF32, {1}).type());
    for (int64_t i = 0; i < n; ++i) x = *graph->AddFunction("a", "add", {x, x});
    EXPECT_OK(graph->AddOutput({x}));
    return graph;
  };
  const auto linear = [](ir::Graph& graph) { EXPECT_OK(graph.InferAllTypes()); };
  const auto quadratic = [](ir::Graph& graph) {
    volatile int64_t uses = 0;
    for (const ir::Node* a = graph.first(); a != nullptr; a = a->next()) {
      for (const ir::Node* b = graph.first(); b != a; b = b->next()) uses = uses + b->num_uses();
    }
  };
  EXPECT_LT(GrowthOverCopying(1000, build, linear), kMostIfLinear);
  EXPECT_GT(GrowthOverCopying(1000, build, quadratic), kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::testing

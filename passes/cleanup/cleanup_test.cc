#include "passes/cleanup/cleanup.h"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"

namespace fuselage::cleanup {
namespace {

TEST(CleanupTest, IsLinearInTheGraph) {
  ir::OpRegistry ops;
  ops::RegisterAll(ops);
  ir::Graph graph("deep", ops);
  graph.AddParameter("one", std::make_shared<Tensor>(Tensor::Scalar<float>(1)));
  ASSERT_OK_AND_ASSIGN(ir::Node * x, graph.AddPlaceholder("x", Tensor(DType::kF32, {2}).type()));
  constexpr int kBlocks = 25000;
  for (int i = 0; i < kBlocks; ++i) {
    ASSERT_OK_AND_ASSIGN(ir::Node * one, graph.AddGetAttr(absl::StrCat("one", i), "one"));
    ASSERT_OK_AND_ASSIGN(x, graph.AddFunction(absl::StrCat("mul", i), "mul", {x, one}));
    ASSERT_OK_AND_ASSIGN(x, graph.AddFunction(absl::StrCat("identity", i), "identity", {x}));
    ASSERT_OK(graph.AddFunction(absl::StrCat("dead", i), "relu", {x}));
  }
  ASSERT_OK(graph.AddOutput({x}));
  passes::Remarks remarks;
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK_AND_ASSIGN(const bool changed, Cleanup({}).Run(graph, remarks));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_TRUE(changed);
  EXPECT_EQ(graph.num_nodes(), 2);
  EXPECT_TRUE(graph.parameters().empty());
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 20) << "a hundred thousand nodes take well under a second, unless the walk is quadratic";
}

}  // namespace
}  // namespace fuselage::cleanup

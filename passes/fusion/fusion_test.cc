#include "passes/fusion/fusion.h"

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"

namespace fuselage::fusion {
namespace {

class FusionTest : public ::testing::Test {
 protected:
  void SetUp() override { ops::RegisterAll(ops_); }

  ir::OpRegistry ops_;
  passes::Remarks remarks_;
};

TEST_F(FusionTest, TheFusedNodeKeepsTheNameAndListsItsSources) {
  constexpr char kText[] = R"(graph @t {
    param @w: f32[1,1,1,1] = [2]
    module @conv = conv2d(weight=@w)
    %x: f32[1,1,2,2] = placeholder
    %conv: f32[1,1,2,2] = call_module @conv(%x) from(conv, bn)
    %add: f32[1,1,2,2] = call_function add(%conv, %x)
    %relu: f32[1,1,2,2] = call_function relu(%add)
    output(%relu)
  })";
  ASSERT_OK_AND_ASSIGN(auto graph, ir::Parse(kText, ops_));
  ASSERT_OK_AND_ASSIGN(const bool changed, Fusion({}).Run(*graph, remarks_));
  EXPECT_TRUE(changed);
  const ir::Node* conv = graph->FindNodeOrNull("conv");
  ASSERT_NE(conv, nullptr);
  EXPECT_THAT(conv->sources(), ::testing::ElementsAre("conv", "bn", "add", "relu"));
  EXPECT_EQ(graph->output()->operand(0), conv);
  ASSERT_OK(graph->Verify());
}

TEST_F(FusionTest, IsLinearInTheGraph) {
  ir::Graph graph("deep", ops_);
  graph.AddParameter("w", std::make_shared<Tensor>(Tensor::Of<float>({1, 1, 1, 1}, {2})));
  ASSERT_OK_AND_ASSIGN(ir::Node * x, graph.AddPlaceholder("x", Tensor(DType::kF32, {1, 1, 1, 1}).type()));
  constexpr int kBlocks = 33333;
  for (int i = 0; i < kBlocks; ++i) {
    const std::string path = absl::StrCat("conv", i);
    ASSERT_OK(graph.AddModule(path, "conv2d", {}, {{"weight", "w"}}));
    ir::Node* shortcut = x;
    ASSERT_OK_AND_ASSIGN(x, graph.AddModuleCall(path, path, {x}));
    ASSERT_OK_AND_ASSIGN(x, graph.AddFunction(absl::StrCat("add", i), "add", {x, shortcut}));
    ASSERT_OK_AND_ASSIGN(x, graph.AddFunction(absl::StrCat("relu", i), "relu", {x}));
  }
  ASSERT_OK(graph.AddOutput({x}));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK_AND_ASSIGN(const bool changed, Fusion({}).Run(graph, remarks_));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_TRUE(changed);
  EXPECT_EQ(remarks_.CountApplied(), 2 * kBlocks);
  EXPECT_EQ(graph.num_nodes(), kBlocks + 2);
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 20) << "a hundred thousand nodes take well under a second, unless the walk is quadratic";
}

}  // namespace
}  // namespace fuselage::fusion

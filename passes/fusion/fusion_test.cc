#include "passes/fusion/fusion.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
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

// Residual blocks, a chain of elementwise ops behind each, and two layers that read the same value.
std::unique_ptr<ir::Graph> Deep(const ir::OpRegistry& ops, int64_t size) {
  auto graph = std::make_unique<ir::Graph>("deep", ops);
  graph->AddParameter("w", std::make_shared<Tensor>(Tensor::Of<float>({1, 1, 1, 1}, {2})));
  ir::Node* x = *graph->AddPlaceholder("x", Tensor(DType::kF32, {1, 1, 1, 1}).type());
  for (int64_t i = 0; i < size / 6; ++i) {
    const std::string path = absl::StrCat("conv", i);
    EXPECT_OK(graph->AddModule(path, "conv2d", {}, {{"weight", "w"}}));
    ir::Node* shortcut = x;
    x = *graph->AddModuleCall(path, path, {x});
    x = *graph->AddFunction(absl::StrCat("add", i), "add", {x, shortcut});
    x = *graph->AddFunction(absl::StrCat("relu", i), "relu", {x});
    x = *graph->AddFunction(absl::StrCat("tanh", i), "tanh", {x});
    x = *graph->AddFunction(absl::StrCat("mul", i), "mul", {x, shortcut});
  }
  EXPECT_OK(graph->AddOutput({x}));
  return graph;
}

TEST_F(FusionTest, IsLinearInTheGraph) {
  const auto build = [this](int64_t size) { return Deep(ops_, size); };
  const auto run = [](ir::Graph& graph) {
    passes::Remarks remarks;
    const int64_t nodes = graph.num_nodes();
    EXPECT_OK(Fusion({}).Run(graph, remarks));
    EXPECT_EQ(graph.num_nodes(), (nodes - 2) / 5 * 2 + 2);
  };
  EXPECT_LT(fuselage::testing::GrowthOverCopying(3000, build, run), fuselage::testing::kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::fusion

#include "passes/fusion/fusion.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "ir/text.h"
#include "passes/fusion/subpixel.h"

namespace fuselage::fusion {
namespace {

using Ints = std::vector<int64_t>;

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

// Small integers, which exact sums keep, of either sign.
Tensor Integers(Shape shape) {
  Tensor tensor(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, i * 7 % 23 - 11);
  return tensor;
}

// One axis of a transposed convolution; the other one's are fixed, and unlike.
struct Transposed {
  int64_t kernel, stride, begin, end, output_padding, groups;
};

// A transposed convolution of 2 images with 4 channels; null where it has no result.
std::unique_ptr<ir::Graph> GraphOf(const ir::OpRegistry& ops, const Transposed& t) {
  auto graph = std::make_unique<ir::Graph>("t", ops);
  ir::Node* x = *graph->AddPlaceholder("x", Tensor(DType::kF32, {2, 4, 3, 2}).type());
  const std::string weight = graph->AddParameter("w", std::make_shared<Tensor>(Integers({4, 3, t.kernel, 2})));
  const std::string bias = graph->AddParameter("b", std::make_shared<Tensor>(Integers({3 * t.groups})));
  EXPECT_OK(graph->AddModule("up", "conv_transpose2d",
                             {{"stride", Ints{t.stride, 2}},
                              {"padding", Ints{t.begin, 1, t.end, 0}},
                              {"output_padding", Ints{t.output_padding, 1}},
                              {"groups", t.groups}},
                             {{"weight", weight}, {"bias", bias}}));
  const absl::StatusOr<ir::Node*> up = graph->AddModuleCall("up", "up", {x});
  if (!up.ok()) return nullptr;
  EXPECT_OK(graph->AddOutput({*up}));
  return graph;
}

TEST_F(FusionTest, ATransposedConvolutionOfAnyWindowStaysTheSame) {
  int exact = 0, filled_up = 0;
  for (int64_t i = 0; i < 5 * 3 * 4 * 3 * 2 * 2; ++i) {
    const Transposed t = {i % 5 + 1, i / 5 % 3 + 1, i / 15 % 4, i / 60 % 3, i / 180 % 2, i / 360 + 1};
    if (t.output_padding >= t.stride) continue;
    const auto graph = GraphOf(ops_, t);
    if (graph == nullptr) continue;
    const std::vector<Tensor> inputs = {Integers({2, 4, 3, 2})};
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> wanted, interpreter::Run(*graph, inputs));
    ir::Node* up = graph->FindNodeOrNull("up");
    if (!WhyNotSubpixel(*up).empty()) continue;
    const std::unique_ptr<ir::Graph> fused = graph->Clone();
    ASSERT_OK_AND_ASSIGN(const bool changed, Fusion({}).Run(*fused, remarks_));
    EXPECT_EQ(changed, t.kernel % t.stride == 0);
    ASSERT_OK(RewriteAsSubpixel(up, /*activation=*/nullptr, *graph));
    ASSERT_OK(graph->Verify());
    passes::RemoveDeadNodes(*graph);
    EXPECT_TRUE(!changed || ir::Print(*fused) == ir::Print(*graph));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> found, interpreter::Run(*graph, inputs));
    EXPECT_TRUE(found[0].SameBytes(wanted[0])) << ir::Print(*graph);
    ++(changed ? exact : filled_up);
  }
  EXPECT_GT(exact, 100);
  EXPECT_GT(filled_up, 100);
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

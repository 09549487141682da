#include "passes/conv_bn/conv_bn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "interpreter/interpreter.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "ir/text.h"
#include "passes/conv_bn/fold.h"

namespace fuselage::conv_bn {
namespace {

using ::testing::HasSubstr;

class ConvBnTest : public ::testing::Test {
 protected:
  void SetUp() override { ops::RegisterAll(ops_); }

  ir::OpRegistry ops_;
  passes::Remarks remarks_;
};

// One channel of a batch norm behind a 1x1 convolution, with the variance and weight given.
std::string OneChannel(const std::string& variance, const std::string& weight) {
  return absl::StrReplaceAll(R"(graph @t {
    param @gamma: f32[1] = [1e30]
    param @mean: f32[1] = [0]
    param @var: f32[1] = [VAR]
    param @w: f32[1,1,1,1] = [WEIGHT]
    module @bn = batch_norm(eps=0.0, running_mean=@mean, running_var=@var, weight=@gamma)
    module @conv = conv2d(weight=@w)
    %x: f32[1,1,1,1] = placeholder
    %y: f32[1,1,1,1] = call_module @conv(%x)
    %z: f32[1,1,1,1] = call_module @bn(%y)
    output(%z)
  })",
                             {{"VAR", variance}, {"WEIGHT", weight}});
}

TEST_F(ConvBnTest, DeclinesWhatHasNoFiniteWeights) {
  const struct {
    std::string variance, weight, remark;
  } kCases[] = {
      {"0", "1", "variance + eps is 0 in channel 0"},
      {"-1", "1", "variance + eps is -1 in channel 0"},
      {"nan", "1", "variance + eps is nan in channel 0"},
      {"1", "1e30", "the folded weights are not finite"},
  };
  for (const auto& test : kCases) {
    ASSERT_OK_AND_ASSIGN(auto graph, ir::Parse(OneChannel(test.variance, test.weight), ops_));
    passes::Remarks remarks;
    ConvBnOptions options;
    options.set_keep_batch_norms(true);
    ASSERT_OK_AND_ASSIGN(const bool changed, ConvBn(options).Run(*graph, remarks));
    EXPECT_FALSE(changed);
    EXPECT_THAT(remarks.ToString(), HasSubstr(test.remark));
  }
}

// ResNet's shapes with random statistics: within the contract, measured in double.
TEST_F(ConvBnTest, KeepsTheContractOnWideLayers) {
  constexpr char kText[] = R"(graph @t {
    param @beta: f32[32] = seed(1)
    param @gamma: f32[32] = seed(2)
    param @mean: f32[32] = seed(3)
    param @w: f32[32,16,3,3] = seed(4)
    module @conv = conv2d(padding=[1, 1, 1, 1], stride=[2, 2], weight=@w)
    %x: f32[2,16,9,9] = placeholder
    %y: f32[2,32,5,5] = call_module @conv(%x)
    output(%y)
  })";
  ASSERT_OK_AND_ASSIGN(auto graph, ir::Parse(kText, ops_));
  Tensor variance(DType::kF32, {32});
  for (int c = 0; c < 32; ++c) variance.data<float>()[c] = 1e-6f + 0.1f * c;
  const std::string name = graph->AddParameter("var", std::make_shared<Tensor>(std::move(variance)));
  ir::Node* conv = graph->FindNodeOrNull("y");
  ASSERT_OK(graph->AddModule("bn", "batch_norm", {},
                             {{"weight", "gamma"}, {"bias", "beta"}, {"running_mean", "mean"}, {"running_var", name}}));
  ASSERT_OK_AND_ASSIGN(ir::Node * bn, graph->AddModuleCall("bn", "bn", {conv}));
  graph->output()->set_operand(0, bn);
  ASSERT_OK(graph->Verify());

  const Tensor input = SeededTensor(Tensor(DType::kF32, {2, 16, 9, 9}).type(), 7);
  ASSERT_OK_AND_ASSIGN(const auto before, interpreter::Run(*graph, {input}));
  ASSERT_OK_AND_ASSIGN(const bool changed, ConvBn({}).Run(*graph, remarks_));
  EXPECT_TRUE(changed);
  ASSERT_OK(graph->Verify());
  EXPECT_EQ(graph->num_nodes(), 3);
  ASSERT_OK_AND_ASSIGN(const auto after, interpreter::Run(*graph, {input}));
  double error = 0, size = 0;
  for (int64_t i = 0; i < before[0].num_elements(); ++i) {
    error = std::fmax(error, std::fabs(before[0].At(i) - after[0].At(i)));
    size = std::fmax(size, std::fabs(before[0].At(i)));
  }
  EXPECT_GT(size, 0);
  EXPECT_LE(error, 1e-5 * size);
}

// One of two convolutions, over eight pixels of two channels.
struct Branch {
  int64_t taps, begin, dilation, groups;

  std::string Module(char name, int64_t stride) const {
    const int64_t end = 2 + dilation * (taps - 1) - begin;  // As many results of each branch.
    return absl::StrCat("param @w", std::string(1, name), ": f32[2,", 2 / groups, ",", taps, "] = seed(", int{name},
                        ")\n module @", std::string(1, name), " = conv1d(dilation=[", dilation, "], groups=", groups,
                        ", padding=[", begin, ", ", end, "], stride=[", stride, "], bias=@bias, weight=@w",
                        std::string(1, name), ")\n");
  }
  std::set<int64_t> Taps() const {
    std::set<int64_t> found;
    for (int64_t tap = 0; tap < taps; ++tap) found.insert(tap * dilation - begin);
    return found;
  }
  bool HasRoomFor(const Branch& other) const {
    const std::set<int64_t> taps = Taps(), others = other.Taps();
    return groups <= other.groups && std::includes(taps.begin(), taps.end(), others.begin(), others.end());
  }
};

TEST_F(ConvBnTest, MergesTwoBranchesWhereOneHasRoomForTheOther) {
  std::vector<Branch> branches;
  for (int64_t taps = 1; taps <= 3; ++taps) {
    for (int64_t begin = 0; begin <= 2; ++begin) {
      for (int64_t dilation = 1; dilation <= (taps == 1 ? 1 : 2); ++dilation) {
        for (int64_t groups = 1; groups <= 2; ++groups) branches.push_back({taps, begin, dilation, groups});
      }
    }
  }
  const Tensor input = SeededTensor(Tensor(DType::kF32, {1, 2, 8}).type(), 7);
  int merged = 0;
  for (const Branch& a : branches) {
    for (const Branch& b : branches) {
      const int64_t stride = 1 + merged % 2;
      const std::string op = merged % 3 == 0 ? "sub" : "add", length = stride == 1 ? "10" : "5";
      const std::string result = absl::StrCat(": f32[1,2,", length, "] = ");
      const std::string text =
          absl::StrCat("graph @t {\n param @bias: f32[2] = [0.5, -1]\n", a.Module('a', stride), b.Module('b', stride),
                       "%x: f32[1,2,8] = placeholder\n %a", result, "call_module @a(%x)\n %b", result,
                       "call_module @b(%x)\n %sum", result, "call_function ", op, "(%a, %b)\n output(%sum)\n}\n");
      ASSERT_OK_AND_ASSIGN(auto graph, ir::Parse(text, ops_));
      ASSERT_OK_AND_ASSIGN(const auto before, interpreter::Run(*graph, {input}));
      ASSERT_OK_AND_ASSIGN(const bool changed, ConvBn({}).Run(*graph, remarks_));
      // A dilation of 2 between two taps is no step of a kernel of three beside one another.
      const bool same_steps = a.dilation == b.dilation || a.taps == 1 || b.taps == 1;
      const bool wanted = same_steps && (a.HasRoomFor(b) || (op == "add" && b.HasRoomFor(a)));
      ASSERT_EQ(changed, wanted) << text << remarks_.ToString();
      if (!changed) continue;
      ++merged;
      EXPECT_EQ(graph->num_nodes(), 3);
      ASSERT_OK_AND_ASSIGN(const auto after, interpreter::Run(*graph, {input}));
      for (int64_t i = 0; i < before[0].num_elements(); ++i) EXPECT_NEAR(before[0].At(i), after[0].At(i), 1e-5) << text;
    }
  }
  EXPECT_GT(merged, 100);
}

TEST_F(ConvBnTest, IsLinearInTheGraph) {
  const auto build = [this](int64_t layers) {
    auto graph = std::make_unique<ir::Graph>("deep", ops_);
    graph->AddParameter("w", std::make_shared<Tensor>(Tensor::Of<float>({1, 1, 1, 1}, {2})));
    graph->AddParameter("mean", std::make_shared<Tensor>(Tensor::Of<float>({1}, {0.5})));
    graph->AddParameter("var", std::make_shared<Tensor>(Tensor::Of<float>({1}, {1})));
    EXPECT_OK(graph->AddModule("bn", "batch_norm", {}, {{"running_mean", "mean"}, {"running_var", "var"}}));
    ir::Node* x = *graph->AddPlaceholder("x", Tensor(DType::kF32, {1, 1, 1, 1}).type());
    for (int64_t i = 0; i < layers; ++i) {
      const std::string path = absl::StrCat("conv", i);
      EXPECT_OK(graph->AddModule(path, "conv2d", {}, {{"weight", "w"}}));
      x = *graph->AddModuleCall(absl::StrCat("bn", i), "bn", {*graph->AddModuleCall(path, path, {x})});
    }
    EXPECT_OK(graph->AddOutput({x}));
    return graph;
  };
  const auto run = [](ir::Graph& graph) {
    const int64_t layers = (graph.num_nodes() - 2) / 2;
    passes::Remarks remarks;
    EXPECT_OK(ConvBn({}).Run(graph, remarks));
    EXPECT_EQ(remarks.CountApplied(), layers);
    EXPECT_EQ(graph.num_nodes(), layers + 2);
  };
  EXPECT_LT(fuselage::testing::GrowthOverCopying(5000, build, run), fuselage::testing::kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::conv_bn

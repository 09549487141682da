// With kernels that only record what they are asked for; cases_test runs the real ones.
#include "passes/int8_fusion/int8_fusion.h"

#include <gtest/gtest.h>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "ir/text.h"

namespace fuselage::int8_fusion {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeKernel : public kernels::Kernel {
 public:
  explicit FakeKernel(const kernels::KernelDesc& desc) : Kernel(desc) { set_variant("fake"); }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer>, absl::Span<const kernels::Buffer>,
               const kernels::RunContext&) const override {}
};

class Int8FusionTest : public ::testing::Test {
 protected:
  Int8FusionTest() { ops::RegisterAll(ops_); }

  void AddKernel(const std::string& op) {
    kernels::KernelEntry entry;
    entry.op = op;
    entry.create = [this](const kernels::KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
      if (refuse_) return absl::UnimplementedError("wanted fewer rows");
      descs_.push_back(desc);
      return std::make_unique<FakeKernel>(desc);
    };
    kernels_.Register(std::move(entry));
  }

  void Run(absl::string_view text) {
    ASSERT_OK_AND_ASSIGN(graph_, ir::Parse(text, ops_));
    ASSERT_OK_AND_ASSIGN(changed_, Int8Fusion({}, &kernels_).Run(*graph_, remarks_));
    ASSERT_OK(graph_->Verify());
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  bool refuse_ = false;
  std::vector<kernels::KernelDesc> descs_;
  std::unique_ptr<ir::Graph> graph_;
  passes::Remarks remarks_;
  bool changed_ = false;
};

constexpr char kStem[] = R"(graph @stem {
  param @w: i8[2,3,1,1]<scale=0.01> = seed(1)
  module @model.conv = int8.conv2d(out_scale=0.1, stride=[2, 2], weight=@w)
  module @pool = int8.max_pool2d(kernel_size=[3, 3], stride=[1, 1])
  %x: u8[1,3,8,8]<scale=0.02, zp=4> = placeholder
  %conv: u8[1,2,4,4]<scale=0.1> = call_module @model.conv(%x) from(conv, bn)
  %pool: u8[1,2,2,2]<scale=0.1> = call_module @pool(%conv)
  output(%pool)
}
)";

TEST_F(Int8FusionTest, ATableWantsAKernel) {
  constexpr char kBytes[] = R"(graph @bytes {
  module @q = int8.quantize(out_scale=0.1)
  %x: u8[1,3,4,4] = placeholder
  %to: f32[1,3,4,4] = call_function to(%x, dtype=f32)
  %q: u8[1,3,4,4]<scale=0.1> = call_module @q(%to)
  output(%q)
}
)";
  Run(kBytes);
  EXPECT_FALSE(changed_);
  AddKernel("int8.lookup");
  Run(kBytes);
  EXPECT_TRUE(changed_);
}

TEST_F(Int8FusionTest, AsksTheKernelWithEverythingItNeeds) {
  AddKernel("int8.conv2d_max_pool2d");
  Run(kStem);
  EXPECT_TRUE(changed_);
  ASSERT_FALSE(descs_.empty());
  const kernels::KernelDesc& desc = descs_[0];
  ASSERT_EQ(desc.inputs.size(), 1);
  EXPECT_EQ(desc.input(0), (TensorType{DType::kU8, {1, 3, 8, 8}, PerTensor(0.02, 4), Layout::kNhwc}));
  EXPECT_EQ(desc.output(), (TensorType{DType::kU8, {1, 2, 2, 2}, PerTensor(0.1), Layout::kNhwc}));
  EXPECT_EQ(desc.parameters.size(), 1);
  EXPECT_THAT(desc.GetInts("stride"), ElementsAre(2, 2));
  EXPECT_THAT(desc.GetInts("pool_kernel_size"), ElementsAre(3, 3));
  EXPECT_THAT(desc.GetInts("pool_padding"), ElementsAre(0, 0, 0, 0));  // A default.
}

TEST_F(Int8FusionTest, KeepsNameAndPathAndListsSources) {
  AddKernel("int8.conv2d_max_pool2d");
  Run(kStem);
  const ir::Node* fused = graph_->FindNodeOrNull("pool");
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->module()->path, "model.conv");
  EXPECT_THAT(fused->sources(), ElementsAre("conv", "bn", "pool"));
  EXPECT_EQ(graph_->num_nodes(), 3);
}

TEST_F(Int8FusionTest, WhatTheKernelRefusesStays) {
  AddKernel("int8.conv2d_max_pool2d");
  refuse_ = true;
  Run(kStem);
  EXPECT_FALSE(changed_);
  EXPECT_THAT(remarks_.ToString(), HasSubstr("missed %pool: not fused: wanted fewer rows"));
}

TEST_F(Int8FusionTest, WhatHasNoKernelStays) {
  Run(kStem);
  EXPECT_FALSE(changed_);
  EXPECT_THAT(remarks_.ToString(), HasSubstr("missed %pool: not fused: no kernel for int8.conv2d_max_pool2d"));
}

TEST_F(Int8FusionTest, NeedsKernels) {
  ASSERT_OK_AND_ASSIGN(graph_, ir::Parse(kStem, ops_));
  EXPECT_THAT(Int8Fusion({}, nullptr).Run(*graph_, remarks_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kernels")));
}

// Layers behind one long chain of views.
TEST_F(Int8FusionTest, CostIsLinear) {
  AddKernel("int8.global_avg_pool_linear");
  const auto build = [this](int64_t n) {
    auto graph = std::make_unique<ir::Graph>("long", ops_);
    const TensorType images = {DType::kU8, {1, 2, 3, 3}, PerTensor(0.5), Layout::kRowMajor};
    ir::Node* rows = *graph->AddFunction("gap", "int8.global_avg_pool", {*graph->AddPlaceholder("x", images)});
    for (int64_t i = 0; i < n; ++i) {
      rows = *graph->AddFunction("view", "reshape", {rows}, {{"shape", std::vector<int64_t>{1, 2}}});
    }
    const std::string weight = graph->AddParameter(
        "w", std::make_shared<Tensor>(SeededTensor({DType::kI8, {2, 2}, PerTensor(0.5f), Layout::kRowMajor}, 1)));
    std::vector<ir::Node*> outputs;
    for (int64_t i = 0; i < n; ++i) {
      const std::string path = graph->UniqueModulePath("fc");
      EXPECT_OK(graph->AddModule(path, "int8.linear", {}, {{"weight", weight}}).status());
      outputs.push_back(*graph->AddModuleCall("fc", path, {rows}));
    }
    EXPECT_OK(graph->AddOutput(outputs));
    return graph;
  };
  const auto run = [this](ir::Graph& graph) {
    passes::Remarks remarks;
    EXPECT_OK(Int8Fusion({}, &kernels_).Run(graph, remarks));
  };
  EXPECT_LT(fuselage::testing::GrowthOverCopying(1000, build, run), fuselage::testing::kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::int8_fusion

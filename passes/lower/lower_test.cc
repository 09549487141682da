// With kernels that only record what they are asked for; cases_test runs the real ones.
#include "passes/lower/lower.h"

#include <gtest/gtest.h>

#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/testing/scaling.h"
#include "ir/text.h"

namespace fuselage::lower {
namespace {

using ::fuselage::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

class FakeKernel : public kernels::Kernel {
 public:
  explicit FakeKernel(const kernels::KernelDesc& desc) : Kernel(desc) { set_variant("fake"); }

 private:
  void Compute(absl::Span<const kernels::ConstBuffer>, absl::Span<const kernels::Buffer>,
               const kernels::RunContext&) const override {}
};

class LowerTest : public ::testing::Test {
 protected:
  LowerTest() {
    ops::RegisterAll(ops_);
    for (const char* op : {"int8.conv2d", "int8.relu", "int8.quantize", "int8.dequantize"}) AddKernel(op);
  }

  void AddKernel(const std::string& op) {
    kernels::KernelEntry entry;
    entry.op = op;
    entry.create = [this](const kernels::KernelDesc& desc) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
      if (desc.op == refused_ || desc.parameters.count(refused_) > 0) {
        return absl::FailedPreconditionError("output channel 3: the accumulator may overflow");
      }
      descs_.push_back(desc);
      return std::make_unique<FakeKernel>(desc);
    };
    kernels_.Register(std::move(entry));
  }

  void Run(absl::string_view text) {
    ASSERT_OK_AND_ASSIGN(graph_, ir::Parse(text, ops_));
    ASSERT_OK_AND_ASSIGN(changed_, Lower(&kernels_).Run(*graph_, remarks_));
    ASSERT_OK(graph_->Verify());
  }

  const kernels::KernelDesc& DescOf(absl::string_view op) {
    for (const kernels::KernelDesc& desc : descs_) {
      if (desc.op == op) return desc;
    }
    ADD_FAILURE() << "nobody asked for " << op;
    return descs_[0];
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
  std::string refused_;  // An op, or a parameter.
  std::vector<kernels::KernelDesc> descs_;
  std::unique_ptr<ir::Graph> graph_;
  passes::Remarks remarks_;
  bool changed_ = false;
};

constexpr char kConv[] = R"(graph @g {
  param @w: i8[1,1,1,1]<axis=0, scale=[0.01]> = [100]
  module @layer.conv = conv2d(activation="relu", stride=[2, 2], weight=@w)
  %x: f32[1,1,4,4] = placeholder
  %x_q: u8[1,1,4,4]<scale=0.5, zp=9> = call_function quantize(%x, scales=[0.5], zero_points=[9]) from(x)
  %x_dq: f32[1,1,4,4] = call_function dequantize(%x_q) from(conv, bn)
  %conv: f32[1,1,2,2] = call_module @layer.conv(%x_dq) from(conv, bn)
  %conv_q: u8[1,1,2,2]<scale=0.25, zp=3> = call_function quantize(%conv, scales=[0.25], zero_points=[3]) from(bn)
  %conv_dq: f32[1,1,2,2] = call_function dequantize(%conv_q) from(relu)
  %relu: f32[1,1,2,2] = call_function relu(%conv_dq)
  output(%relu)
}
)";

TEST_F(LowerTest, AsksTheKernelWithEverythingItNeeds) {
  Run(kConv);
  const kernels::KernelDesc& desc = DescOf("int8.conv2d");
  ASSERT_EQ(desc.inputs.size(), 2);
  EXPECT_EQ(desc.input(0), (TensorType{DType::kU8, {1, 1, 4, 4}, PerTensor(0.5, 9), Layout::kNhwc}));
  EXPECT_FALSE(desc.has_input(1));  // No residual.
  EXPECT_EQ(desc.output(), (TensorType{DType::kU8, {1, 1, 2, 2}, PerTensor(0.25, 3), Layout::kNhwc}));
  EXPECT_EQ(desc.parameters.size(), 1);
  EXPECT_EQ(desc.GetString("activation"), "relu");
  EXPECT_THAT(desc.GetInts("stride"), ElementsAre(2, 2));
  EXPECT_THAT(desc.GetInts("padding"), ElementsAre(0, 0, 0, 0));  // A default.
  EXPECT_EQ(desc.GetInt("groups"), 1);
}

TEST_F(LowerTest, KeepsNameAndPathAndListsSources) {
  Run(kConv);
  const ir::Node* conv = graph_->FindNodeOrNull("conv");
  ASSERT_NE(conv, nullptr);
  EXPECT_TRUE(conv->IsOp("int8.conv2d"));
  EXPECT_EQ(conv->module()->path, "layer.conv");
  EXPECT_EQ(conv->module()->parameters.at("weight"), "w");
  EXPECT_THAT(conv->sources(), ElementsAre("conv", "bn"));
  EXPECT_EQ(conv->tensor_type().quant, PerTensor(0.25, 3));
  EXPECT_TRUE(conv->operand(0)->IsOp("int8.quantize"));
  for (const ir::Node* node = graph_->first(); node != nullptr; node = node->next()) {
    if (node->is_call() && node->op()->name.substr(0, 5) == "int8.") {
      EXPECT_FALSE(node->sources().empty()) << node->name();
    }
  }
}

TEST_F(LowerTest, AReluWithoutReaderInCodesStaysFloat) {
  Run(kConv);
  EXPECT_TRUE(graph_->FindNodeOrNull("relu")->IsOp("relu"));
  EXPECT_TRUE(graph_->FindNodeOrNull("conv_dq")->IsOp("int8.dequantize"));
  EXPECT_THAT(remarks_.ToString(), HasSubstr("missed %relu: its float result is a graph output"));
}

TEST_F(LowerTest, WhatAKernelRefusesStaysFloat) {
  refused_ = "int8.conv2d";
  Run(kConv);
  const ir::Node* conv = graph_->FindNodeOrNull("conv");
  EXPECT_TRUE(conv->IsOp("conv2d"));
  EXPECT_TRUE(conv->operand(0)->IsOp("int8.dequantize"));
  EXPECT_TRUE(graph_->FindNodeOrNull("conv_q")->IsOp("int8.quantize"));
  EXPECT_THAT(remarks_.list(), Contains(Field(&passes::Remark::message, HasSubstr("the accumulator may overflow"))));
}

// As CUDA's does: the convolution stays in INT8, what scales its channels behind it.
TEST_F(LowerTest, WhatAKernelDoesNotScaleIsScaledBehindIt) {
  constexpr char kScaled[] = R"(graph @g {
  param @s: f32[1,1,1] = [2]
  param @w: i8[1,1,1,1]<axis=0, scale=[0.01]> = [100]
  module @conv = conv2d(activation="silu", weight=@w)
  %x: u8[1,1,2,2]<scale=0.5, zp=9> = placeholder
  %s: f32[1,1,1] = get_attr @s
  %x_dq: f32[1,1,2,2] = call_function dequantize(%x)
  %conv: f32[1,1,2,2] = call_module @conv(%x_dq)
  %mul: f32[1,1,2,2] = call_function mul(%conv, %s)
  %q: u8[1,1,2,2]<scale=0.25, zp=3> = call_function quantize(%mul, scales=[0.25], zero_points=[3])
  output(%q)
}
)";
  refused_ = "post_scale";
  Run(kScaled);
  const ir::Node* conv = graph_->FindNodeOrNull("conv");
  EXPECT_TRUE(conv->IsOp("int8.conv2d"));
  EXPECT_EQ(conv->tensor_type().dtype, DType::kF32);
  EXPECT_EQ(graph_->FindNodeOrNull("mul")->operand(0), conv);
  EXPECT_TRUE(graph_->FindNodeOrNull("q")->IsOp("int8.quantize"));
  EXPECT_EQ(graph_->parameters().size(), 2);

  refused_.clear();
  Run(kScaled);
  EXPECT_EQ(graph_->FindNodeOrNull("mul"), nullptr);
  EXPECT_EQ(graph_->FindNodeOrNull("conv")->tensor_type().dtype, DType::kU8);
}

TEST_F(LowerTest, WhatWasLoweredInPartIsLoweredFurther) {
  refused_ = "int8.conv2d";
  Run(kConv);
  refused_.clear();
  ASSERT_OK_AND_ASSIGN(const bool changed, Lower(&kernels_).Run(*graph_, remarks_));
  EXPECT_TRUE(changed);
  ASSERT_OK(graph_->Verify());
  EXPECT_TRUE(graph_->FindNodeOrNull("conv")->IsOp("int8.conv2d"));
  EXPECT_EQ(graph_->FindNodeOrNull("conv_q"), nullptr);
}

TEST_F(LowerTest, WithoutConversionKernelsTheReferenceOpsStay) {
  refused_ = "int8.quantize";
  Run(kConv);
  EXPECT_TRUE(graph_->FindNodeOrNull("conv")->IsOp("int8.conv2d"));
  EXPECT_TRUE(graph_->FindNodeOrNull("x_q")->IsOp("quantize"));
}

TEST_F(LowerTest, NeedsKernels) {
  ASSERT_OK_AND_ASSIGN(graph_, ir::Parse(kConv, ops_));
  EXPECT_THAT(Lower(nullptr).Run(*graph_, remarks_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("kernels")));
}

TEST_F(LowerTest, CostIsLinear) {
  const auto build = [this](int64_t blocks) {
    auto graph = std::make_unique<ir::Graph>("long", ops_);
    ir::Node* x = *graph->AddPlaceholder("x", TensorType{DType::kU8, {4}, PerTensor(0.5), Layout::kRowMajor});
    for (int64_t i = 0; i < blocks; ++i) {
      ir::Node* relu = *graph->AddFunction("r", "relu", {*graph->AddFunction("dq", "dequantize", {x})});
      x = *graph->AddFunction("q", "quantize", {relu}, {{"scales", std::vector<double>{0.5}}});
    }
    EXPECT_OK(graph->AddOutput({x}));
    return graph;
  };
  const auto run = [this](ir::Graph& graph) {
    const int64_t blocks = (graph.num_nodes() - 2) / 3;
    passes::Remarks remarks;
    EXPECT_OK(Lower(&kernels_).Run(graph, remarks));
    EXPECT_EQ(graph.num_nodes(), blocks + 2);
  };
  EXPECT_LT(fuselage::testing::GrowthOverCopying(2000, build, run), fuselage::testing::kMostIfLinear);
}

}  // namespace
}  // namespace fuselage::lower

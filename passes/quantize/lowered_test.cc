// What quantize decides must survive quant_lift and lower: which ops then run on codes, and what they compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/substitute.h"
#include "ir/base/comparison.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "kernels/register_all.h"
#include "passes/core/pipeline.h"
#include "passes/lower/lower.h"
#include "passes/quant_lift/quant_lift.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/seeded_runner.h"

namespace fuselage::quantize {
namespace {

using ::testing::ElementsAre;

class LoweredTest : public ::testing::Test {
 protected:
  LoweredTest() {
    ops::RegisterAll(ops_);
    kernels::RegisterAll(kernels_);
  }

  // The ops of the calls, in order; the lowered graph stays close to the float one on seeded inputs.
  std::vector<std::string> Lowered(absl::string_view text, const QuantizeOptions& options) {
    return Lowered(*ir::Parse(text, ops_), options);
  }
  std::vector<std::string> Lowered(std::unique_ptr<ir::Graph> graph, const QuantizeOptions& options) {
    const std::unique_ptr<ir::Graph> before = graph->Clone();
    SeededRunner runner;
    passes::Remarks remarks;
    EXPECT_OK(Quantize(options, &runner).Run(*graph, remarks));
    EXPECT_OK(quant_lift::QuantLift().Run(*graph, remarks));
    EXPECT_OK(lower::Lower(&kernels_).Run(*graph, remarks));
    EXPECT_OK(graph->Verify());
    for (int sample = 0; sample < 4; ++sample) {
      const auto wanted = interpreter::Run(*before, SeededInputs(*before, sample));
      const auto found = interpreter::Run(*graph, SeededInputs(*graph, sample));
      EXPECT_OK(found);
      for (size_t i = 0; i < wanted->size(); ++i) EXPECT_GE(Compare((*wanted)[i], (*found)[i]).snr_db, 30) << i;
    }
    std::vector<std::string> called;
    for (const ir::Node* node = graph->first(); node != nullptr; node = node->next()) {
      if (node->is_call()) called.push_back(node->op()->name);
    }
    return called;
  }

  ir::OpRegistry ops_;
  kernels::KernelRegistry kernels_;
};

constexpr char kThreeConvolutions[] = R"(graph @three {
  param @a.weight: f32[16,3,3,3] = seed(1)
  param @b.weight: f32[16,16,1,1] = seed(2)
  param @c.weight: f32[4,16,3,3] = seed(3)
  module @a = conv2d(activation="relu", weight=@a.weight)
  module @b = conv2d(weight=@b.weight)
  module @c = conv2d(weight=@c.weight)
  %x: f32[1,3,9,9] = placeholder
  %a: f32[1,16,7,7] = call_module @a(%x)
  %b: f32[1,16,7,7] = call_module @b(%a)
  %c: f32[1,4,5,5] = call_module @c(%b)
  output(%c)
}
)";

TEST_F(LoweredTest, ASkippedLayerBetweenTwoQuantized) {
  QuantizeOptions options;
  options.add_skip("b");
  EXPECT_THAT(Lowered(kThreeConvolutions, options),
              ElementsAre("int8.quantize", "int8.conv2d", "conv2d", "int8.quantize", "int8.conv2d"));
}

TEST_F(LoweredTest, ASkippedFirstLayer) {
  QuantizeOptions options;
  options.set_input_channel_multiple(16);
  EXPECT_THAT(Lowered(kThreeConvolutions, options),
              ElementsAre("conv2d", "int8.quantize", "int8.conv2d", "int8.conv2d"));
}

TEST_F(LoweredTest, ASkippedLastLayer) {
  QuantizeOptions options;
  options.set_output_channel_multiple(16);
  EXPECT_THAT(Lowered(kThreeConvolutions, options),
              ElementsAre("int8.quantize", "int8.conv2d", "int8.conv2d", "conv2d"));
}

constexpr char kResidual[] = R"(graph @residual {
  param @a.weight: f32[8,8,1,1] = seed(1)
  param @b.weight: f32[8,8,1,1] = seed(2)
  module @a = conv2d(weight=@a.weight)
  module @b = conv2d(activation="relu", weight=@b.weight)
  %x: f32[1,8,4,4] = placeholder
  %a: f32[1,8,4,4] = call_module @a(%x)
  %b: f32[1,8,4,4] = call_module @b(%a, %x)
  %s: f32[1,8,4,4] = call_function sigmoid(%b)
  output(%s)
}
)";

TEST_F(LoweredTest, NothingStandsBetweenAConvolutionAndItsFusedAdd) {
  EXPECT_THAT(Lowered(kResidual, {}),
              ElementsAre("int8.quantize", "int8.conv2d", "int8.conv2d", "int8.dequantize", "sigmoid"));
}

TEST_F(LoweredTest, ASkippedResidualConvolutionReadsFloats) {
  QuantizeOptions options;
  options.add_skip("b");
  EXPECT_THAT(Lowered(kResidual, options), ElementsAre("int8.quantize", "int8.conv2d", "conv2d", "sigmoid"));
}

TEST_F(LoweredTest, AResidualFromASkippedConvolution) {
  QuantizeOptions options;
  options.add_skip("a");
  EXPECT_THAT(Lowered(kResidual, options),
              ElementsAre("conv2d", "int8.quantize", "int8.quantize", "int8.conv2d", "int8.dequantize", "sigmoid"));
}

TEST_F(LoweredTest, ASkippedOpBetweenOthers) {
  QuantizeOptions options;
  options.add_skip_ops("add");
  EXPECT_THAT(Lowered(R"(graph @add {
  param @w: f32[2,2,1,1] = [1, 2, 3, 4]
  module @conv = conv2d(weight=@w)
  module @pool = max_pool2d(kernel_size=[2, 2], stride=[2, 2])
  %x: f32[1,2,4,4] = placeholder
  %y: f32[1,2,4,4] = placeholder
  %p: f32[1,2,4,4] = call_function relu(%x)
  %q: f32[1,2,4,4] = call_function add(%p, %y)
  %c: f32[1,2,4,4] = call_module @conv(%q)
  %r: f32[1,2,2,2] = call_module @pool(%c)
  %s: f32[1,2,2,2] = call_function sigmoid(%r)
  output(%s)
}
)",
                      options),
              ElementsAre("int8.quantize", "int8.relu", "int8.dequantize", "add", "int8.quantize", "int8.conv2d",
                          "int8.max_pool2d", "int8.dequantize", "sigmoid"));
}

// Attention as two products of computed values: the scores stay floats for the softmax.
TEST_F(LoweredTest, ProductsOfComputedValues) {
  EXPECT_THAT(Lowered(R"(graph @products {
  %q: f32[2,5,8] = placeholder
  %k: f32[2,6,8] = placeholder
  %v: f32[2,6,4] = placeholder
  %t: f32[2,8,6] = call_function permute(%k, dims=[0, 2, 1])
  %scores: f32[2,5,6] = call_function matmul(%q, %t)
  %w: f32[2,5,6] = call_function softmax(%scores)
  %mixed: f32[2,5,4] = call_function matmul(%w, %v)
  output(%mixed)
}
)",
                      {}),
              ElementsAre("int8.quantize", "permute", "int8.quantize", "int8.matmul", "softmax", "int8.quantize",
                          "int8.quantize", "int8.matmul"));
}

// Three layers share the rows' codes, two of them behind a view.
TEST_F(LoweredTest, ScalesOfRows) {
  QuantizeOptions options;
  options.add_per_token("*");
  EXPECT_THAT(Lowered(R"(graph @rows {
  param @a.weight: f32[6,8] = seed(1)
  param @b.weight: f32[6,8] = seed(2)
  param @c.weight: f32[6,8] = seed(3)
  module @a = linear(weight=@a.weight)
  module @b = linear(activation="gelu", weight=@b.weight)
  module @c = linear(weight=@c.weight)
  %x: f32[2,5,8] = placeholder
  %a: f32[2,5,6] = call_module @a(%x)
  %rows: f32[10,8] = call_function reshape(%x, shape=[10, 8])
  %b: f32[10,6] = call_module @b(%rows)
  %c: f32[10,6] = call_module @c(%rows)
  output(%a, %b, %c)
}
)",
                      options),
              ElementsAre("dynamic_quantize_symmetric", "getitem", "getitem", "int8.linear", "reshape", "reshape",
                          "int8.linear", "int8.linear"));
}

// Of two linears, the one whose weight another quantizer has left in four bits, if it is large.
TEST_F(LoweredTest, StoredFourBits) {
  const auto graph = [&](int64_t channels) {
    std::unique_ptr<ir::Graph> made = *ir::Parse(absl::Substitute(R"(graph @stored {
  param @a.weight: f32[64,32] = seed(1)
  param @b.weight: f32[$0,64] = seed(2)
  module @a = linear(activation="relu", weight=@a.weight)
  module @b = linear(weight=@b.weight)
  %x: f32[5,32] = placeholder
  %a: f32[5,64] = call_module @a(%x)
  %b: f32[5,$0] = call_module @b(%a)
  output(%b)
}
)",
                                                                  channels),
                                                 ops_);
    Tensor weight(DType::kF32, {channels, 64});
    for (int64_t i = 0; i < weight.num_elements(); ++i) {
      weight.Set(i, static_cast<double>(i * 7 % 16 - 8) * (i % 64 < 32 ? 0.01 : 0.02));
    }
    ir::Module* const b = made->FindNodeOrNull("b")->module();
    const std::string name = made->AddParameter("stored", std::make_shared<const Tensor>(weight));
    EXPECT_OK(made->UpdateModule(b, b->op->name, b->attributes, {{"weight", name}}));
    return made;
  };
  EXPECT_THAT(Lowered(graph(1025), {}), ElementsAre("int8.quantize", "int8.linear", "dynamic_quantize_symmetric",
                                                    "getitem", "getitem", "int8.linear_groups"));
  EXPECT_THAT(Lowered(graph(1024), {}), ElementsAre("int8.quantize", "int8.linear", "int8.linear"));
  QuantizeOptions recode;
  recode.set_recode_four_bits(true);
  EXPECT_THAT(Lowered(graph(1025), recode), ElementsAre("int8.quantize", "int8.linear", "int8.linear"));
  QuantizeOptions groups;
  groups.set_weights(QuantizeOptions::INT8_GROUPS);  // For what per_token names: nothing.
  EXPECT_THAT(Lowered(graph(1025), groups), ElementsAre("int8.quantize", "int8.linear", "int8.linear"));
}

constexpr char kEverything[] = R"(graph @everything {
  param @a.weight: f32[8,3,3,3] = seed(1)
  param @b.weight: f32[4,3,3,3] = seed(2)
  param @fc.weight: f32[5,48] = seed(3)
  module @a = conv2d(activation="relu", weight=@a.weight)
  module @avg = avg_pool2d(kernel_size=[2, 2], stride=[2, 2])
  module @b = conv2d(weight=@b.weight)
  module @fc = linear(weight=@fc.weight)
  module @flatten = flatten()
  module @max = max_pool2d(kernel_size=[2, 2], stride=[2, 2])
  %x: f32[1,3,10,10] = placeholder
  %a: f32[1,8,8,8] = call_module @a(%x)
  %b: f32[1,4,8,8] = call_module @b(%x)
  %cat: f32[1,12,8,8] = call_function cat(%a, %b, dim=1)
  %max: f32[1,12,4,4] = call_module @max(%cat)
  %avg: f32[1,12,2,2] = call_module @avg(%max)
  %flatten: f32[1,48] = call_module @flatten(%avg)
  %fc: f32[1,5] = call_module @fc(%flatten)
  output(%fc)
}
)";

TEST_F(LoweredTest, Int8StaysThroughPoolsFlattenAndConcat) {
  for (const auto activations :
       {QuantizeOptions::U8_AFFINE, QuantizeOptions::I8_AFFINE, QuantizeOptions::I8_SYMMETRIC}) {
    for (const auto weights : {QuantizeOptions::PER_CHANNEL, QuantizeOptions::PER_TENSOR}) {
      QuantizeOptions options;
      options.set_activations(activations);
      options.set_weights(weights);
      EXPECT_THAT(Lowered(kEverything, options),
                  ElementsAre("int8.quantize", "int8.conv2d", "int8.conv2d", "cat", "int8.max_pool2d",
                              "int8.avg_pool2d", "flatten", "int8.linear"));
    }
  }
}

// Two layers and what reads them. What a state begins with stays a float.
constexpr char kRecurrent[] = R"(graph @recurrent {
  param @a.bias: f32[2,48] = seed(1)
  param @a.recurrent_weight: f32[2,24,6] = seed(2)
  param @a.weight: f32[2,24,5] = seed(3)
  param @b.recurrent_weight: f32[1,12,4] = seed(4)
  param @b.weight: f32[1,12,12] = seed(5)
  param @c.weight: f32[3,4] = seed(6)
  module @a = lstm(bias=@a.bias, direction="bidirectional", recurrent_weight=@a.recurrent_weight, weight=@a.weight)
  module @b = gru(linear_before_reset=true, recurrent_weight=@b.recurrent_weight, weight=@b.weight)
  module @c = linear(weight=@c.weight)
  %x: f32[7,2,5] = placeholder
  %h: f32[1,2,4] = placeholder
  %a: (f32[7,2,2,6], f32[2,2,6], f32[2,2,6]) = call_module @a(%x)
  %y: f32[7,2,2,6] = call_function getitem(%a, index=0)
  %p: f32[7,2,2,6] = call_function permute(%y, dims=[0, 2, 1, 3])
  %r: f32[7,2,12] = call_function reshape(%p, shape=[7, 2, 12])
  %b: (f32[7,1,2,4], f32[1,2,4]) = call_module @b(%r, none, %h)
  %last: f32[1,2,4] = call_function getitem(%b, index=1)
  %c: f32[1,2,3] = call_module @c(%last)
  output(%c)
}
)";

TEST_F(LoweredTest, RecurrentLayers) {
  const auto wanted = ElementsAre("int8.quantize", "int8.lstm", "getitem", "int8.quantize", "permute", "reshape",
                                  "int8.gru", "getitem", "int8.quantize", "int8.linear");
  EXPECT_THAT(Lowered(kRecurrent, {}), wanted);
  QuantizeOptions options;
  options.set_correct_bias(true);
  options.set_weights(QuantizeOptions::PER_TENSOR);
  EXPECT_THAT(Lowered(kRecurrent, options), wanted);
}

TEST_F(LoweredTest, ASkippedRecurrentLayer) {
  QuantizeOptions options;
  options.add_skip_ops("lstm");
  EXPECT_THAT(Lowered(kRecurrent, options), ElementsAre("lstm", "getitem", "int8.quantize", "permute", "reshape",
                                                        "int8.gru", "getitem", "int8.quantize", "int8.linear"));
}

}  // namespace
}  // namespace fuselage::quantize

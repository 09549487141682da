#include "passes/weight_rounding/weight_rounding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/base/comparison.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/seeded_runner.h"

namespace fuselage::weight_rounding {
namespace {

using ::testing::HasSubstr;

// Values that have much in common, as a network's have.
constexpr char kNetwork[] = R"(graph @n {
  param @a.weight: f32[96,4] = seed(1)
  param @b.bias: f32[24] = seed(2)
  param @b.weight: f32[24,96] = seed(3)
  module @a = linear(weight=@a.weight)
  module @b = linear(bias=@b.bias, weight=@b.weight)
  %x: f32[5,30,4] = placeholder
  %a: f32[5,30,96] = call_module @a(%x)
  %relu: f32[5,30,96] = call_function relu(%a)
  %b: f32[5,30,24] = call_module @b(%relu)
  output(%b)
})";

class WeightRoundingTest : public ::testing::Test {
 protected:
  WeightRoundingTest() { ops::RegisterAll(ops_); }

  double Snr(const ir::Graph& wanted, const ir::Graph& found) {
    const std::vector<Tensor> inputs = quantize::SeededInputs(wanted, 7);  // Of no calibration sample.
    return Compare((*interpreter::Run(wanted, inputs))[0], (*interpreter::Run(found, inputs))[0]).snr_db;
  }
  std::unique_ptr<ir::Graph> Rounded(const ir::Graph& graph, QuantizeOptions::Weights weights, double damping = 0) {
    std::unique_ptr<ir::Graph> rounded = graph.Clone();
    WeightRoundingOptions options;
    options.set_weights(weights);
    options.set_damping(damping);
    passes::Remarks remarks;
    EXPECT_OK(WeightRounding(options, &runner_).Run(*rounded, remarks));
    EXPECT_OK(rounded->Verify());
    return rounded;
  }
  // Inputs per token.
  std::unique_ptr<ir::Graph> Quantized(const ir::Graph& graph, QuantizeOptions::Weights weights) {
    std::unique_ptr<ir::Graph> quantized = graph.Clone();
    QuantizeOptions options;
    options.add_per_token("*");
    options.add_ops("linear");
    options.set_weights(weights);
    passes::Remarks remarks;
    EXPECT_OK(quantize::Quantize(options, &runner_).Run(*quantized, remarks));
    return quantized;
  }

  ir::OpRegistry ops_;
  quantize::SeededRunner runner_;
};

TEST_F(WeightRoundingTest, OutputsOfOtherSamplesMoveLess) {
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(kNetwork, ops_);
  const std::unique_ptr<ir::Graph> rounded = Rounded(*graph, QuantizeOptions::MXFP4);
  EXPECT_GT(Snr(*graph, *Quantized(*rounded, QuantizeOptions::MXFP4)),
            Snr(*graph, *Quantized(*graph, QuantizeOptions::MXFP4)) + 2);
}

// Convolutions in groups, one of which reads zeros; with the largest damping all weights are rounded to nearest.
TEST_F(WeightRoundingTest, OutputsOfConvolutionsMoveLess) {
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(R"(graph @n {
  param @a.weight: f32[32,2,1,1] = seed(1)
  param @b.weight: f32[16,8,3,3] = seed(2)
  param @c.bias: f32[4] = seed(3)
  param @c.weight: f32[4,1,3,3] = seed(4)
  module @a = conv2d(activation="relu", weight=@a.weight)
  module @b = conv2d(groups=4, padding=[1, 1, 1, 1], weight=@b.weight)
  module @c = conv2d(groups=2, stride=[2, 2], bias=@c.bias, weight=@c.weight)
  %x: f32[2,2,9,9] = placeholder
  %a: f32[2,32,9,9] = call_module @a(%x)
  %b: f32[2,16,9,9] = call_module @b(%a)
  %zero: f32[2,2,9,9] = call_function sub(%x, %x)
  %c: f32[2,4,4,4] = call_module @c(%zero)
  output(%b, %c)
})",
                                                      ops_);
  const std::unique_ptr<ir::Graph> rounded = Rounded(*graph, QuantizeOptions::PER_CHANNEL);
  const std::unique_ptr<ir::Graph> nearest = Rounded(*graph, QuantizeOptions::PER_CHANNEL, 1e100);
  EXPECT_GT(Snr(*graph, *rounded), Snr(*graph, *nearest) + 2);
  const auto weight = [](const ir::Graph& of) {
    return *of.FindParameterOrNull(of.FindModuleOrNull("c")->parameters.at("weight"))->tensor;
  };
  EXPECT_TRUE(weight(*rounded).SameBytes(weight(*nearest)));
}

// Codes of the rounded weights stand for these weights.
TEST_F(WeightRoundingTest, QuantizeTakesTheValues) {
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(kNetwork, ops_);
  for (const QuantizeOptions::Weights weights : {QuantizeOptions::PER_CHANNEL, QuantizeOptions::PER_TENSOR}) {
    const std::unique_ptr<ir::Graph> rounded = Rounded(*graph, weights);
    const std::unique_ptr<ir::Graph> quantized = Quantized(*rounded, weights);
    for (const char* path : {"a", "b"}) {
      const Tensor& values =
          *rounded->FindParameterOrNull(rounded->FindModuleOrNull(path)->parameters.at("weight"))->tensor;
      const Tensor codes = Dequantized(
          *quantized->FindParameterOrNull(quantized->FindModuleOrNull(path)->parameters.at("weight"))->tensor);
      EXPECT_LE(Compare(values, codes).max_abs_error, 1e-7) << path;
    }
  }
}

TEST_F(WeightRoundingTest, NeedsSamples) {
  const std::unique_ptr<ir::Graph> graph = *ir::Parse(kNetwork, ops_);
  passes::Remarks remarks;
  EXPECT_THAT(WeightRounding({}, nullptr).Run(*graph, remarks).status().ToString(),
              HasSubstr("needs calibration data"));
}

}  // namespace
}  // namespace fuselage::weight_rounding

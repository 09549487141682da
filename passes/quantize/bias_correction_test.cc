#include "passes/quantize/bias_correction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/substitute.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/scales.h"
#include "passes/quantize/seeded_runner.h"

namespace fuselage::quantize {
namespace {

class BiasCorrectionTest : public ::testing::Test {
 protected:
  BiasCorrectionTest() { ops::RegisterAll(ops_); }

  std::unique_ptr<ir::Graph> Parse(const std::string& text) { return *ir::Parse(text, ops_); }

  // By output channel of the graph's result [1, C, ...]: the mean of `b`'s less `a`'s over the runner's samples.
  static std::vector<double> MeanDifference(const ir::Graph& a, const ir::Graph& b, int samples = 4) {
    std::vector<double> means;
    for (int sample = 0; sample < samples; ++sample) {
      const std::vector<Tensor> inputs = SeededInputs(a, sample);
      const Tensor x = (*interpreter::Run(a, inputs))[0], y = (*interpreter::Run(b, inputs))[0];
      const int64_t channels = x.dim(1), inner = x.num_elements() / channels;
      means.resize(channels);
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        means[i / inner] += (y.data<float>()[i] - x.data<float>()[i]) / static_cast<double>(inner * samples);
      }
    }
    return means;
  }

  ir::OpRegistry ops_;
  SeededRunner runner_;
};

constexpr char kConv[] = R"(graph @g {
  param @b: f32[4] = seed(1)
  param @w: $0
  module @conv = conv2d(bias=@b, groups=2, padding=[1, 1, 1, 1], stride=[2, 2], weight=@w)
  %x: f32[1,6,7,9] = placeholder
  %relu: f32[1,6,7,9] = call_function relu(%x)
  %y: f32[1,4,4,5] = call_module @conv(%relu)
  output(%y)
})";

// The graph with the weight of its conv2d rounded, and what that reads.
absl::StatusOr<std::unique_ptr<ir::Graph>> Rounded(const ir::Graph& graph, const Tensor& weight, const Codes& input) {
  std::unique_ptr<ir::Graph> rounded = graph.Clone();
  ir::Module* conv = rounded->FindModuleOrNull("conv");
  const std::string name = rounded->AddParameter("r", std::make_shared<const Tensor>(Dequantized(weight)));
  RETURN_IF_ERROR(rounded->UpdateModule(conv, "conv2d", conv->attributes, {{"bias", "b"}, {"weight", name}}));
  ir::Node* call = rounded->FindNodeOrNull("y");
  ASSIGN_OR_RETURN(ir::Node * codes, rounded->AddFunction("codes", "quantize", {call->operand(0)},
                                                          {{"dtype", input.dtype},
                                                           {"scales", std::vector<double>{Spelled(input.scale)}},
                                                           {"zero_points", std::vector<int64_t>{input.zero_point}}},
                                                          call));
  ASSIGN_OR_RETURN(ir::Node * floats, rounded->AddFunction("floats", "dequantize", {codes}, {}, call));
  call->set_operand(0, floats);
  return rounded;
}

TEST_F(BiasCorrectionTest, IsTheMeanOfWhatRoundingAdds) {
  const auto graph = Parse(absl::Substitute(kConv, "f32[4,3,3,3] = seed(2)"));
  for (const auto mode : {QuantizeOptions::PER_CHANNEL, QuantizeOptions::PER_TENSOR}) {
    // The largest saturate; nothing does; all but 0 do.
    for (const Codes input :
         {Codes{DType::kU8, 0.002f, 0}, Codes{DType::kI8, 0.02f, -9}, Codes{DType::kI8, 0.1f, 127}}) {
      const Tensor& weight = *graph->FindParameterOrNull("w")->tensor;
      const Tensor codes = QuantizeWeight(weight, WeightScales({&weight, nullptr, 0.1f, mode}), mode);
      const auto input_codes = [&](const ir::Node&) { return input; };
      ASSERT_OK_AND_ASSIGN(const auto errors, MeanErrors(*graph, {{"conv", &codes}}, input_codes, runner_));
      ASSERT_OK_AND_ASSIGN(const auto rounded, Rounded(*graph, codes, input));
      const std::vector<double> wanted = MeanDifference(*graph, *rounded);
      ASSERT_EQ(errors[0].size(), wanted.size());
      for (size_t c = 0; c < wanted.size(); ++c) {
        EXPECT_GT(std::fabs(wanted[c]), 1e-5);
        EXPECT_NEAR(errors[0][c], wanted[c], 1e-6) << c;
      }
    }
  }
}

// Over both call sites and all rows the second input is 1, 3, 2 and 6, and its weight is rounded by 0.01.
TEST_F(BiasCorrectionTest, CountsEveryCallSiteOfALinear) {
  const auto graph = Parse(R"(graph @g {
  param @w: f32[1,2] = [1.27, 0.51]
  param @c: f32[2,2] = [0, 1, 0, 3]
  module @fc = linear(activation="relu", weight=@w)
  %x: f32[2,2] = placeholder
  %c: f32[2,2] = get_attr @c
  %zero: f32[2,2] = call_function sub(%x, %x)
  %sum: f32[2,2] = call_function add(%c, %zero)
  %twice: f32[2,2] = call_function add(%sum, %c)
  %a: f32[2,1] = call_module @fc(%sum)
  %b: f32[2,1] = call_module @fc(%twice)
  output(%a, %b)
})");
  TensorType type{DType::kI8, {1, 2}, PerAxis(0, {0.01f}), Layout::kRowMajor};
  Tensor codes(type);
  codes.data<int8_t>()[0] = 127;
  codes.data<int8_t>()[1] = 52;
  const auto exact = [](const ir::Node&) { return Codes{DType::kU8, 1, 0}; };  // Of whole numbers.
  ASSERT_OK_AND_ASSIGN(const auto errors, MeanErrors(*graph, {{"fc", &codes}}, exact, runner_));
  EXPECT_NEAR(errors[0][0], 0.01 * (1 + 3 + 2 + 6) / 4, 1e-6);
}

TEST_F(BiasCorrectionTest, TakesTheMeanErrorFromTheBias) {
  const auto graph = Parse(absl::Substitute(kConv, "f32[4,3,3,3] = seed(2)"));
  QuantizeOptions options;
  options.set_weights(QuantizeOptions::PER_TENSOR);
  const auto error = [&](bool corrected) {
    const auto quantized = graph->Clone();
    options.set_correct_bias(corrected);
    passes::Remarks remarks;
    EXPECT_OK(Quantize(options, &runner_).Run(*quantized, remarks));
    EXPECT_OK(quantized->Verify());
    double sum = 0;
    for (const double mean : MeanDifference(*graph, *quantized)) sum += std::fabs(mean);
    return sum;
  };
  EXPECT_LT(error(true), 0.25 * error(false)) << "what rounding %x adds to %relu stays";
}

TEST_F(BiasCorrectionTest, ALayerWithoutABiasGetsOne) {
  const auto graph = Parse(R"(graph @g {
  param @w: f32[1,2] = [1.27, 0.515]
  module @fc = linear(weight=@w)
  %x: f32[3,2] = placeholder
  %y: f32[3,1] = call_module @fc(%x)
  output(%y)
})");
  QuantizeOptions options;
  options.set_correct_bias(true);
  passes::Remarks remarks;
  EXPECT_OK(Quantize(options, &runner_).Run(*graph, remarks));
  EXPECT_OK(graph->Verify());
  EXPECT_NE(graph->FindParameterOrNull("fc.corrected_bias"), nullptr);
}

}  // namespace
}  // namespace fuselage::quantize

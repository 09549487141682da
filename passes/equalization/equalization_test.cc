#include "passes/equalization/equalization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/base/comparison.h"
#include "ir/ops/register_all.h"
#include "ir/testing/matchers.h"
#include "ir/text.h"
#include "passes/equalization/channel_scales.h"
#include "passes/quantize/quantize.h"
#include "passes/quantize/seeded_runner.h"

namespace fuselage::equalization {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ExponentTest, NearestAndCeiling) {
  EXPECT_EQ(NearestExponent(1), 0);
  EXPECT_EQ(NearestExponent(1.41), 0);
  EXPECT_EQ(NearestExponent(1.42), 1);
  EXPECT_EQ(NearestExponent(0.3), -2);
  EXPECT_EQ(CeilingExponent(1), 0);
  EXPECT_EQ(CeilingExponent(1.001), 1);
  EXPECT_EQ(CeilingExponent(0.25), -2);
  EXPECT_EQ(CeilingExponent(0.2500001), -1);
}

TEST(ChannelStatisticsTest, ReadsChannelsOnAnyAxis) {
  ChannelStatistics second(2, 1), last(3, 2);
  const Tensor value = Tensor::Of<float>({1, 2, 3}, {1, 2, 3, -4, 5, 0});
  ASSERT_OK(second.Add(value));
  ASSERT_OK(last.Add(value));
  EXPECT_EQ(second.min(0), 0);
  EXPECT_EQ(second.max(1), 5);
  EXPECT_EQ(second.magnitude(1), 5);
  EXPECT_EQ(second.mean_square(1), (16 + 25) / 3.0);
  EXPECT_EQ(last.min(0), -4);
  EXPECT_EQ(last.mean_square(2), 4.5);
  EXPECT_THAT(second.Add(Tensor::Of<float>({1, 2, 1}, {1, std::numeric_limits<float>::quiet_NaN()})).ToString(),
              HasSubstr("element 1 is nan"));
}

// What was scaled apart by powers of two comes together again.
TEST(ChooseScalesTest, UndoesWhatWasPlanted) {
  const int planted[] = {0, 5, -4, 7};
  ChannelStatistics statistics(4, 1);
  Tensor input = SeededTensor(Tensor(DType::kF32, {1, 4, 64}).type(), 1);
  Tensor weight = SeededTensor(Tensor(DType::kF32, {16, 4, 3}).type(), 2);
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 64; ++i) input.data<float>()[c * 64 + i] *= std::ldexp(1.0f, planted[c]);
    for (int o = 0; o < 16; ++o) {
      for (int k = 0; k < 3; ++k) weight.data<float>()[(o * 4 + c) * 3 + k] *= std::ldexp(1.0f, -planted[c]);
    }
  }
  ASSERT_OK(statistics.Add(input));
  const ChannelScales chosen = ChooseScales({{&weight, 1, &statistics}}, {});
  EXPECT_THAT(chosen.exponents, ElementsAre(-5, 0, -9, 2));
  EXPECT_GT(chosen.gain_db, 20);
  const ChannelScales limited = ChooseScales({{&weight, 1, &statistics}}, {-16, -1, -3, 0});
  EXPECT_THAT(limited.exponents, ElementsAre(-7, -1, -3, 0));
}

TEST(ChooseScalesTest, ChannelsThatAreNeverUsedStay) {
  ChannelStatistics statistics(2, 1);
  ASSERT_OK(statistics.Add(Tensor::Of<float>({1, 2, 1}, {8, 0})));
  const Tensor weight = Tensor::Of<float>({1, 2, 1}, {1, 100});
  EXPECT_THAT(ChooseScales({{&weight, 1, &statistics}}, {}).exponents, ElementsAre(0, 0));
}

class EqualizationTest : public ::testing::Test {
 protected:
  EqualizationTest() { ops::RegisterAll(ops_); }

  // conv, relu, conv, relu, linear: the channels in the middle 2^spread apart from one to the next, in turns up and down.
  std::unique_ptr<ir::Graph> Network(int spread) {
    std::unique_ptr<ir::Graph> graph = *ir::Parse(R"(graph @n {
  param @a.bias: f32[16] = seed(1)
  param @a.weight: f32[16,3,3,3] = seed(2)
  param @b.bias: f32[8] = seed(3)
  param @b.weight: f32[8,16,3,3] = seed(4)
  module @a = conv2d(bias=@a.bias, weight=@a.weight)
  module @b = conv2d(bias=@b.bias, weight=@b.weight)
  %x: f32[1,3,12,12] = placeholder
  %a: f32[1,16,10,10] = call_module @a(%x)
  %relu: f32[1,16,10,10] = call_function relu(%a)
  %b: f32[1,8,8,8] = call_module @b(%relu)
  output(%b)
})", ops_);
    const auto scale = [&](const char* name, int64_t channels, int64_t inner, int sign) {
      Tensor tensor = *graph->FindParameterOrNull(name)->tensor;
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        const int64_t c = i / inner % channels;
        tensor.data<float>()[i] = std::ldexp(tensor.data<float>()[i], sign * spread * (c % 3 - 1));
      }
      return graph->AddParameter("scaled", std::make_shared<const Tensor>(std::move(tensor)));
    };
    ir::Module* a = graph->FindModuleOrNull("a");
    ir::Module* b = graph->FindModuleOrNull("b");
    const std::string weight = scale("a.weight", 16, 27, 1), bias = scale("a.bias", 16, 1, 1);
    EXPECT_OK(graph->UpdateModule(a, "conv2d", a->attributes, {{"weight", weight}, {"bias", bias}}));
    EXPECT_OK(graph->UpdateModule(b, "conv2d", b->attributes,
                                  {{"weight", scale("b.weight", 16, 9, -1)}, {"bias", "b.bias"}}));
    return graph;
  }

  double QuantizedSnr(const ir::Graph& graph) {
    const std::unique_ptr<ir::Graph> quantized = graph.Clone();
    passes::Remarks remarks;
    EXPECT_OK(quantize::Quantize({}, &runner_).Run(*quantized, remarks));
    const std::vector<Tensor> inputs = quantize::SeededInputs(graph, 0);
    return Compare((*interpreter::Run(graph, inputs))[0], (*interpreter::Run(*quantized, inputs))[0]).snr_db;
  }

  ir::OpRegistry ops_;
  quantize::SeededRunner runner_;
};

// A network whose channels were scaled apart quantizes as well as before, and no bit of its FP32 result changes.
TEST_F(EqualizationTest, GivesBackWhatScalingTook) {
  const std::unique_ptr<ir::Graph> plain = Network(0), scaled = Network(5);
  const double wanted = QuantizedSnr(*plain), lost = QuantizedSnr(*scaled);
  EXPECT_LT(lost, wanted - 10);
  const std::vector<Tensor> inputs = quantize::SeededInputs(*scaled, 3);
  const std::vector<Tensor> before = *interpreter::Run(*scaled, inputs);
  passes::Remarks remarks;
  EXPECT_OK(Equalization({}, &runner_).Run(*scaled, remarks));
  EXPECT_OK(scaled->Verify());
  EXPECT_TRUE((*interpreter::Run(*scaled, inputs))[0].SameBytes(before[0]));
  EXPECT_GT(QuantizedSnr(*scaled), wanted - 1);
}

// Where there is nothing to gain, a few samples say so.
TEST_F(EqualizationTest, AsksForAllSamplesWhereTheFirstPromiseAGain) {
  const auto visited = [&](int spread, int samples = 20) {
    quantize::SeededRunner runner(samples);
    passes::Remarks remarks;
    EXPECT_OK(Equalization({}, &runner).Run(*Network(spread), remarks));
    return runner.visited();
  };
  EXPECT_EQ(visited(0), 8);
  EXPECT_EQ(visited(5), 8 + 20);
  EXPECT_EQ(visited(5, 7), 7) << "these are all";
}

TEST_F(EqualizationTest, NeedsSamples) {
  const std::unique_ptr<ir::Graph> graph = Network(5);
  passes::Remarks remarks;
  EXPECT_THAT(Equalization({}, nullptr).Run(*graph, remarks).status().ToString(), HasSubstr("needs calibration data"));
}

}  // namespace
}  // namespace fuselage::equalization

#include "passes/quantize/scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fuselage::quantize {
namespace {

using ::testing::ElementsAre;

constexpr float kMaxFloat = std::numeric_limits<float>::max();

TEST(SpelledTest, IsShortAndRoundsToTheScale) {
  EXPECT_EQ(Spelled(0.1f), 0.1);
  float scale = 1e-38f;
  for (int i = 0; i < 100'000; ++i) {
    scale *= 1.00173f;
    ASSERT_EQ(static_cast<float>(Spelled(scale)), scale);
  }
}

TEST(ActivationCodesTest, AfterAReluTheZeroPointIsZero) {
  const Codes codes = ActivationCodes({0, 5.1}, QuantizeOptions::U8_AFFINE);
  EXPECT_EQ(codes.dtype, DType::kU8);
  EXPECT_EQ(codes.scale, static_cast<float>(5.1 / 255));
  EXPECT_EQ(codes.zero_point, 0);
}

TEST(ActivationCodesTest, TheRangeIncludesZero) {
  EXPECT_EQ(ActivationCodes({2, 4}, QuantizeOptions::U8_AFFINE).scale, static_cast<float>(4.0 / 255));
  EXPECT_EQ(ActivationCodes({2, 4}, QuantizeOptions::U8_AFFINE).zero_point, 0);
  EXPECT_EQ(ActivationCodes({-4, -2}, QuantizeOptions::U8_AFFINE).scale, static_cast<float>(4.0 / 255));
  EXPECT_EQ(ActivationCodes({-4, -2}, QuantizeOptions::U8_AFFINE).zero_point, 255);
}

TEST(ActivationCodesTest, Affine) {
  EXPECT_EQ(ActivationCodes({-1, 3}, QuantizeOptions::U8_AFFINE).zero_point, 64);  // rne(63.75)
  const Codes codes = ActivationCodes({-1, 3}, QuantizeOptions::I8_AFFINE);
  EXPECT_EQ(codes.dtype, DType::kI8);
  EXPECT_EQ(codes.scale, static_cast<float>(4.0 / 255));
  EXPECT_EQ(codes.zero_point, -64);
}

TEST(ActivationCodesTest, Symmetric) {
  const Codes codes = ActivationCodes({-6.35, 3}, QuantizeOptions::I8_SYMMETRIC);
  EXPECT_EQ(codes.dtype, DType::kI8);
  EXPECT_EQ(codes.scale, static_cast<float>(6.35 / 127));
  EXPECT_EQ(codes.zero_point, 0);
}

TEST(ActivationCodesTest, EveryRangeGetsANormalScale) {
  for (const Range range : {Range{0, 0}, Range{0, 1e-40}, Range{-1e-45, 0}, Range{-kMaxFloat, kMaxFloat},
                            Range{0, std::numeric_limits<float>::min()}}) {
    for (const auto mode : {QuantizeOptions::U8_AFFINE, QuantizeOptions::I8_AFFINE, QuantizeOptions::I8_SYMMETRIC}) {
      const Codes codes = ActivationCodes(range, mode);
      EXPECT_TRUE(std::isnormal(codes.scale));
      const IntegerRange limits = RangeOf(codes.dtype);
      EXPECT_GE(codes.zero_point, limits.min);
      EXPECT_LE(codes.zero_point, limits.max);
    }
  }
  EXPECT_EQ(ActivationCodes({0, 0}, QuantizeOptions::U8_AFFINE).scale, 1);
}

TEST(WeightScalesTest, PerChannelAndPerTensor) {
  const Tensor weight = Tensor::Of<float>({2, 2}, {0.5f, -1.27f, 0.254f, 0.1f});
  EXPECT_THAT(WeightScales({&weight, nullptr, 1, QuantizeOptions::PER_CHANNEL}),
              ElementsAre(static_cast<float>(1.27f / 127.0), static_cast<float>(0.254f / 127.0)));
  EXPECT_THAT(WeightScales({&weight, nullptr, 1, QuantizeOptions::PER_TENSOR}),
              ElementsAre(static_cast<float>(1.27f / 127.0)));
}

TEST(WeightScalesTest, ZeroChannelsGetAFiniteScale) {
  const Tensor weight = Tensor::Of<float>({2, 1}, {0, 12.7f});
  const float scale = static_cast<float>(12.7f / 127.0);
  EXPECT_THAT(WeightScales({&weight, nullptr, 1, QuantizeOptions::PER_CHANNEL}), ElementsAre(scale, scale));
  const Tensor zeros = Tensor::Of<float>({2, 1}, {0, 0});
  EXPECT_THAT(WeightScales({&zeros, nullptr, 1, QuantizeOptions::PER_CHANNEL}), ElementsAre(1, 1));
  EXPECT_THAT(WeightScales({&zeros, nullptr, 1, QuantizeOptions::PER_TENSOR}), ElementsAre(1));
}

// Channels along the second axis: the rows of a recurrent layer's directions.
TEST(WeightScalesTest, AlongAnotherAxis) {
  const Tensor weight = Tensor::Of<float>({2, 2, 2}, {1.2f, -0.5f, 0.1f, 0.2f, -2.54f, 1, 0.254f, -0.12f});
  WeightRequest request{&weight};
  request.channel_axis = 1;
  const std::vector<float> scales = WeightScales(request);
  EXPECT_THAT(scales, ElementsAre(static_cast<float>(2.54f / 127.0), static_cast<float>(0.254f / 127.0)));
  const Tensor codes = QuantizeWeight(weight, scales, QuantizeOptions::PER_CHANNEL, 1);
  EXPECT_THAT(codes.values<int8_t>(), ElementsAre(60, -25, 50, 100, -127, 50, 127, -60));
  EXPECT_EQ(codes.type().quant, PerAxis(1, scales));
}

// A channel that folding a batch norm all but switched off: its bias must stay an int32 in steps of s_x * s_w.
TEST(WeightScalesTest, TinyChannelsLeaveRoomForTheirBias) {
  const Tensor weight = Tensor::Of<float>({2, 1}, {1e-12f, 1});
  const Tensor bias = Tensor::Of<float>({2}, {0.5f, 0.5f});
  const float input_scale = 0.02f;
  const std::vector<float> scales = WeightScales({&weight, &bias, input_scale, QuantizeOptions::PER_CHANNEL});
  EXPECT_LE(0.5 / (input_scale * scales[0]), 0x1p30 * 1.0001);
  EXPECT_EQ(scales[1], static_cast<float>(1 / 127.0));
  const Tensor codes = QuantizeWeight(weight, scales, QuantizeOptions::PER_CHANNEL);
  // At the largest input code, what rounding the weight costs is less than a float's rounding of the bias.
  EXPECT_LT(std::fabs(Dequantized(codes).At(0) - 1e-12) * 255 * input_scale, 0.5 * 0x1p-22);
}

TEST(WeightScalesTest, ScalesAreNormalWhateverTheWeights) {
  const Tensor weight = Tensor::Of<float>({3, 1}, {1e-44f, kMaxFloat, -1e-30f});
  for (float scale : WeightScales({&weight, nullptr, 1, QuantizeOptions::PER_CHANNEL})) {
    EXPECT_TRUE(std::isnormal(scale));
  }
}

TEST(QuantizeWeightTest, OfSevenBitsPairsFit) {
  const Tensor weight = SeededTensor(Tensor(DType::kF32, {20, 30}).type(), 1);
  const auto mode = QuantizeOptions::PER_CHANNEL_7_BITS;
  const std::vector<float> scales = WeightScales({&weight, nullptr, 1, mode});
  const absl::Span<const float> row = weight.values<float>().first(30);
  EXPECT_EQ(scales[0], static_cast<float>(std::max(*std::max_element(row.begin(), row.end()),
                                                   -*std::min_element(row.begin(), row.end())) /
                                          63.0));
  const Tensor codes = QuantizeWeight(weight, scales, mode);
  EXPECT_THAT(codes.values<int8_t>(), ::testing::Each(::testing::AllOf(::testing::Ge(-63), ::testing::Le(63))));
  EXPECT_THAT(codes.values<int8_t>(), ::testing::Contains(::testing::AnyOf(63, -63)));
}

TEST(QuantizeWeightTest, RoundsHalfToEvenAndSaturatesSymmetrically) {
  const Tensor weight = Tensor::Of<float>({2, 4}, {0.5f, 1.5f, -2.5f, 127.4f, -1270, 5, 15, 1});
  const Tensor codes = QuantizeWeight(weight, {1, 10}, QuantizeOptions::PER_CHANNEL);
  EXPECT_THAT(codes.values<int8_t>(), ElementsAre(0, 2, -2, 127, -127, 0, 2, 0));
  EXPECT_EQ(codes.type().quant, PerAxis(0, {1, 10}));
  const Tensor flat = QuantizeWeight(weight, {10}, QuantizeOptions::PER_TENSOR);
  EXPECT_THAT(flat.values<int8_t>(), ElementsAre(0, 0, 0, 13, -127, 0, 2, 0));
  EXPECT_EQ(flat.type().quant, PerTensor(10));
}

}  // namespace
}  // namespace fuselage::quantize

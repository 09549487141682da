#include "ir/base/mxfp4.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/ops/core/testing.h"
#include "ir/ops/dynamic_quantize/dynamic_quantize.h"

namespace fuselage::ops::dynamic_quantize {
namespace {

using mxfp4::FromE2M1;
using mxfp4::FromE8M0;
using mxfp4::kE8M0NaN;
using mxfp4::kE8M0One;
using mxfp4::SharedScale;
using mxfp4::ToE2M1;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Table 5 of the specification.
TEST(E2M1Test, Values) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (int code = 0; code < 16; ++code) {
    EXPECT_EQ(FromE2M1(code), values[code]) << code;
    EXPECT_EQ(std::signbit(FromE2M1(code)), code >= 8) << code;
    EXPECT_EQ(ToE2M1(values[code]), code);
  }
}

// Between neighbours the nearer wins; in the middle the even code, whose mantissa bit is 0.
TEST(E2M1Test, RoundsHalfToEven) {
  for (int code = 0; code < 7; ++code) {
    const double low = FromE2M1(code), high = FromE2M1(code + 1), middle = (low + high) / 2;
    const int even = code % 2 == 0 ? code : code + 1;
    for (int sign : {0, 8}) {
      const double s = sign == 0 ? 1 : -1;
      EXPECT_EQ(ToE2M1(s * middle), even + sign) << middle;
      EXPECT_EQ(ToE2M1(s * std::nextafter(middle, 0)), code + sign) << middle;
      EXPECT_EQ(ToE2M1(s * std::nextafter(middle, 8)), code + 1 + sign) << middle;
      EXPECT_EQ(ToE2M1(s * std::nextafter(low, 8)), code + sign) << low;
      EXPECT_EQ(ToE2M1(s * std::nextafter(high, 0)), code + 1 + sign) << high;
    }
  }
}

// Against the definition, for each multiple of 1/1024 that a group's scale can leave, [-8, 8].
TEST(E2M1Test, TakesTheNearestValue) {
  for (int k = -8192; k <= 8192; ++k) {
    const double value = k / 1024.0;
    int nearest = 0;
    for (int code = 1; code < 8; ++code) {
      const double distance = std::fabs(std::fabs(value) - FromE2M1(code));
      const double least = std::fabs(std::fabs(value) - FromE2M1(nearest));
      if (distance < least || (distance == least && code % 2 == 0)) nearest = code;
    }
    EXPECT_EQ(ToE2M1(value), nearest + (value < 0 ? 8 : 0)) << value;
  }
}

TEST(E2M1Test, Saturates) {
  for (double value : {6.5, 7.0, 7.999, 8.0, 1e30, static_cast<double>(kInfinity)}) {
    EXPECT_EQ(ToE2M1(value), 7) << value;
    EXPECT_EQ(ToE2M1(-value), 15) << value;
  }
}

TEST(E8M0Test, Values) {
  EXPECT_EQ(FromE8M0(kE8M0One), 1);
  EXPECT_EQ(FromE8M0(128), 2);
  EXPECT_EQ(FromE8M0(0), std::ldexp(1, -127));
  EXPECT_EQ(FromE8M0(254), std::ldexp(1, 127));
  EXPECT_TRUE(std::isnan(FromE8M0(kE8M0NaN)));
}

TEST(SharedScaleTest, IsThePowerOfTwoBelowTheGreatestOverFour) {
  for (int e = -149; e <= 127; ++e) {
    const float power = std::ldexp(1.0f, e);
    const int wanted = std::max(e - 2 + 127, 0);
    EXPECT_EQ(SharedScale({power}), wanted) << e;
    EXPECT_EQ(SharedScale({-power, power / 2}), wanted) << e;
    const float last = std::nextafter(std::ldexp(1.0, e + 1) > 3e38 ? kInfinity : 2 * power, 0.0f);
    EXPECT_EQ(SharedScale({0, last}), wanted) << e;
  }
  EXPECT_EQ(SharedScale({0, -0.0f}), kE8M0One);
  EXPECT_EQ(SharedScale({}), kE8M0One);
  EXPECT_EQ(SharedScale({1, std::nanf("")}), kE8M0NaN);
  EXPECT_EQ(SharedScale({-kInfinity, 1}), kE8M0NaN);
}

class Mxfp4Test : public ::testing::Test {
 protected:
  std::vector<Tensor> Quantize(const Tensor& x, int group_size) {
    auto results = ops_.RunAll("dynamic_quantize_mxfp4", {x}, {{"group_size", group_size}});
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }
  Tensor RoundTrip(const Tensor& x, int group_size) {
    const std::vector<Tensor> q = Quantize(x, group_size);
    return ops_.Run("dequantize_mxfp4", {q[0], q[1]}, {{"group_size", group_size}});
  }

  const OpTester ops_{Register};
};

TEST_F(Mxfp4Test, EachGroupHasItsScale) {
  const Tensor x = Tensor::Of<float>({2, 4}, {1, 2, 3, 6, 0, 0, -48, 8});
  const std::vector<Tensor> q = Quantize(x, 2);
  EXPECT_EQ(q[1].shape(), (Shape{2, 2}));
  EXPECT_THAT(q[1].values<uint8_t>(), ElementsAre(126, 127, 127, 130));  // 1/2, 1, 1, 8.
  EXPECT_THAT(q[0].values<uint8_t>(), ElementsAre(4, 6, 5, 7, 0, 0, 15, 2));
  EXPECT_THAT(RoundTrip(x, 2).values<float>(), ElementsAre(1, 2, 3, 6, 0, 0, -48, 8));
}

TEST_F(Mxfp4Test, TheLastGroupMayBeShorter) {
  const Tensor x = Tensor::Of<float>({2, 3}, {4, 0.5, 64, 4, 0.5, 0.25});
  const std::vector<Tensor> q = Quantize(x, 2);
  EXPECT_EQ(q[1].shape(), (Shape{2, 2}));
  EXPECT_THAT(q[1].values<uint8_t>(), ElementsAre(127, 131, 127, 123));
  EXPECT_THAT(RoundTrip(x, 2).values<float>(), ElementsAre(4, 0.5, 64, 4, 0.5, 0.25));
  EXPECT_EQ(Quantize(x, 1000)[1].shape(), (Shape{2, 1}));
}

// The error is at most half the distance of neighbours: 1 in [4, 6], and 2 where 8 - epsilon saturates.
TEST_F(Mxfp4Test, ErrorIsBounded) {
  const Tensor x = SeededTensor({DType::kF32, {7, 45}, std::nullopt, Layout::kRowMajor}, 3);
  const std::vector<Tensor> q = Quantize(x, 32);
  const Tensor y = RoundTrip(x, 32);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const double scale = FromE8M0(q[1].data<uint8_t>()[i / 45 * 2 + i % 45 / 32]);
    const double magnitude = std::fabs(x.At(i)) / scale;
    EXPECT_LT(magnitude, 8);
    const double allowed = magnitude > 6 ? magnitude - 6 : magnitude > 4 ? 1 : magnitude > 2 ? 0.5 : 0.25;
    EXPECT_LE(std::fabs(x.At(i) - y.At(i)), allowed * scale) << i;
  }
}

TEST_F(Mxfp4Test, WhatIsNotFiniteIsNaNAsAGroup) {
  const Tensor x = Tensor::Of<float>({6}, {1, kInfinity, 1, 2, std::nanf(""), 4});
  const std::vector<Tensor> q = Quantize(x, 2);
  EXPECT_THAT(q[0].values<uint8_t>(), ElementsAre(0, 0, 4, 6, 0, 0));
  EXPECT_THAT(q[1].values<uint8_t>(), ElementsAre(255, 126, 255));
  const Tensor y = RoundTrip(x, 2);
  for (int i : {0, 1, 4, 5}) EXPECT_TRUE(std::isnan(y.At(i))) << i;
  EXPECT_EQ(y.At(2), 1);
}

TEST_F(Mxfp4Test, Extremes) {
  const float least = std::numeric_limits<float>::denorm_min(), greatest = std::numeric_limits<float>::max();
  const std::vector<Tensor> q = Quantize(Tensor::Of<float>({3}, {least, greatest, -0.0f}), 1);
  EXPECT_THAT(q[0].values<uint8_t>(), ElementsAre(0, 7, 8));
  EXPECT_THAT(q[1].values<uint8_t>(), ElementsAre(0, 252, 127));
}

TEST_F(Mxfp4Test, TypesAndErrors) {
  const TensorType x{DType::kF32, {2, 70}, std::nullopt, Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("dynamic_quantize_mxfp4", {x}), "(u8[2,70], u8[2,3])");
  EXPECT_EQ(ops_.Infer("dynamic_quantize_mxfp4", {x}, {{"group_size", INT64_MAX}}), "(u8[2,70], u8[2,1])");
  const TensorType empty{DType::kF32, {2, 0}, std::nullopt, Layout::kRowMajor};
  EXPECT_EQ(ops_.Infer("dynamic_quantize_mxfp4", {empty}), "(u8[2,0], u8[2,0])");
  EXPECT_THAT(Quantize(Tensor(empty), 4)[1].num_elements(), 0);
  for (int64_t size : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    EXPECT_THAT(ops_.Infer("dynamic_quantize_mxfp4", {x}, {{"group_size", size}}), HasSubstr("wanted a size > 0"));
  }
  const TensorType scalar{DType::kF32, {}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("dynamic_quantize_mxfp4", {scalar}), HasSubstr("rank 0, wanted at least 1"));
  const TensorType codes{DType::kU8, {2, 70}, std::nullopt, Layout::kRowMajor};
  EXPECT_THAT(ops_.Infer("dynamic_quantize_mxfp4", {codes}), HasSubstr("wanted element type f32"));
  EXPECT_THAT(ops_.Infer("dequantize_mxfp4", {codes, codes}), HasSubstr("scale u8[2,70]: wanted shape [2,3]"));
}

}  // namespace
}  // namespace fuselage::ops::dynamic_quantize

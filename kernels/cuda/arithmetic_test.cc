// The host's form against kernels/core/requantize.h, bit for bit.
#include "kernels/cuda/arithmetic.h"

#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "kernels/core/requantize.h"

namespace fuselage::cuda {
namespace {

struct Codes {
  int32_t zero_point;
  kernels::CodeRange range;

  CodeOutput output() const { return {zero_point, range.lo, range.hi}; }
};
constexpr Codes kCodes[] = {{0, {0, 255}},     {128, {128, 255}},   {255, {0, 255}},
                            {255, {255, 255}}, {-128, {-128, 127}}, {5, {-128, 127}}};

uint32_t Bits(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits;
}

TEST(ArithmeticTest, CodesOfFloatsOfAllMagnitudes) {
  for (const Codes& codes : kCodes) {
    const CodeOutput output = codes.output();
    for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1021) {
      const auto narrow = static_cast<uint32_t>(bits);
      float v;
      std::memcpy(&v, &narrow, sizeof(v));
      ASSERT_EQ(QuantizeValue(v, 0.37f, output), kernels::QuantizeValue(v, 0.37f, codes.zero_point, codes.range)) << v;
      if (v != v) continue;
      ASSERT_EQ(ToCode(v, output), kernels::ToCode(v, codes.zero_point, codes.range)) << v;
    }
    for (int half = -1200; half <= 1200; ++half) {  // Ties.
      ASSERT_EQ(ToCode(half * 0.5f, output), kernels::ToCode(half * 0.5f, codes.zero_point, codes.range));
    }
  }
}

TEST(ArithmeticTest, QuantizesWithoutDivisions) {
  std::mt19937_64 random(2);
  const float infinity = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 20000; ++i) {
    // All significands and exponents that are normal, their ends among them.
    const uint32_t bits = (i % 3 == 0 ? i % 6 == 0 ? 0 : 0x7fffff : random() % (1 << 23)) | (1 + i % 254) << 23;
    float scale;
    std::memcpy(&scale, &bits, sizeof(scale));
    const Codes& codes = kCodes[random() % 6];
    const uint8_t flip = i % 2 == 0 ? 0 : 0x80;
    const Quantizer quantizer = MakeQuantizer(scale, codes.output(), flip);
    const auto expect = [&](float x) {
      const auto code = static_cast<uint8_t>(QuantizeValue(x, scale, codes.output()) ^ flip);
      ASSERT_EQ(quantizer.ToCodes(x, 0, x, x) & 0xffff00ff, code * 0x01010001u) << x << " by " << scale;
    };
    for (const float x : {0.0f, -0.0f, infinity, -infinity, std::nanf(""), 3.4e38f, -3.4e38f, 1e-45f, 1e-38f})
      expect(x);
    for (int half = -520; half <= 520; half += 1 + static_cast<int>(random() % 32)) {
      const float x = static_cast<float>(0.5 * half * scale);
      for (const float near : {x, std::nextafter(x, infinity), std::nextafter(x, -infinity)}) expect(near);
    }
    if (HasFatalFailure()) return;
  }
}

TEST(ArithmeticTest, Divides) {
  for (uint32_t divisor = 1; divisor < (1u << 31); divisor += 1 + divisor / 64) {
    const Divider divider = MakeDivider(divisor);
    constexpr uint32_t kEnd = (1u << 31) - 1;
    for (uint32_t n = 0; n < 70000; ++n) ASSERT_EQ(divider.Divide(n), n / divisor) << divisor;
    ASSERT_EQ(divider.Divide(kEnd), kEnd / divisor) << divisor;
    for (uint32_t n = kEnd - kEnd % divisor; n / 5 > divisor; n /= 2) {
      n -= n % divisor;
      ASSERT_EQ(divider.Divide(n), n / divisor) << divisor;
      ASSERT_EQ(divider.Divide(n - 1), n / divisor - 1) << divisor;
    }
  }
}

TEST(ArithmeticTest, RoundsSmallNumbersHalfToEven) {
  for (int quarter = -(1 << 22); quarter <= 1 << 22; ++quarter) {
    const float v = 0.25f * static_cast<float>(quarter);
    ASSERT_EQ(RoundSmallToInt(v), RoundToInt(v)) << v;
  }
  for (const float v : {0x1p22f, -0x1p22f, 0x1p22f - 0.5f, 0.5f - 0x1p22f})
    EXPECT_EQ(RoundSmallToInt(v), RoundToInt(v));
}

TEST(ArithmeticTest, PicksBytesOfTwoWords) {
  EXPECT_EQ(PickBytes(0x33221100, 0x77665544, 0x6420), 0x66442200);
  EXPECT_EQ(PickBytes(0x33221100, 0x77665544, 0x7531), 0x77553311);
  EXPECT_EQ(PickBytes(0x33221100, 0x77665544, 0x5432), 0x55443322);
}

TEST(ArithmeticTest, Epilogues) {
  std::mt19937_64 random(1);
  kernels::Epilogue e;
  e.bias = e.offset = {0};
  e.multiplier = e.float_scale = {0};
  e.float_bias = {0};
  for (int i = 0; i < 2000000; ++i) {
    const Codes& codes = kCodes[i % 6];
    const CodeOutput output = codes.output();
    e.zero_point = codes.zero_point;
    e.range = codes.range;
    // All magnitudes; the sums stay in 32 bits, the products finite.
    const auto acc = static_cast<int32_t>(random()) >> (random() % 31);
    e.bias[0] = e.offset[0] =
        acc > 0 ? -static_cast<int32_t>(random() % 1000000) : static_cast<int32_t>(random() % 1000000);
    e.multiplier[0] = e.float_scale[0] =
        std::ldexp(1.0f + static_cast<float>(random() % (1 << 23)) * 0x1p-23f, -40 + static_cast<int>(random() % 60));
    e.residual_multiplier = std::ldexp(1.0f + static_cast<float>(random() % (1 << 23)) * 0x1p-23f, -3);
    e.residual_zero_point = static_cast<int32_t>(random() % 256);
    e.float_bias[0] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-20f;
    const auto residual = static_cast<int32_t>(random() % 256);
    const float v = Rescale(acc + e.bias[0], e.multiplier[0]);
    ASSERT_EQ(ToCode(v, output), kernels::Requantize(acc, 0, e));
    ASSERT_EQ(ToCode(AddResidual(v, residual - e.residual_zero_point, e.residual_multiplier), output),
              kernels::RequantizeWithResidual(acc, 0, residual, e));
    ASSERT_EQ(Bits(DequantizeAccumulator(acc + e.offset[0], e.float_scale[0], e.float_bias[0])),
              Bits(kernels::DequantizeAccumulator(acc, 0, e)));
  }
}

}  // namespace
}  // namespace fuselage::cuda

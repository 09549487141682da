#include "frontend/onnx/widened.h"

#include <cmath>
#include <limits>

namespace fuselage::onnx {
namespace {

// A small float: a sign, exponent bits with a bias, mantissa bits. Micikevicius et al., "FP8 formats for deep
// learning", 2022; FNUZ (finite, unsigned zero): Noune et al., "8-bit numerical formats for deep neural networks",
// 2022; E2M1: OCP Microscaling Formats, v1.0.
enum class Special {
  kIeee,     // The largest exponent: infinities and NaN.
  kOneNan,   // NaN where all bits but the sign are 1.
  kNegZero,  // NaN is the negative zero.
  kNone,
};
template <int kExponentBits, int kMantissaBits, int kBias, Special kSpecial>
double SmallFloat(uint32_t bits) {
  constexpr uint32_t kExponents = (1u << kExponentBits) - 1, kMantissas = (1u << kMantissaBits) - 1;
  const uint32_t mantissa = bits & kMantissas, exponent = bits >> kMantissaBits & kExponents;
  const bool negative = bits >> (kMantissaBits + kExponentBits) & 1;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (kSpecial == Special::kOneNan && exponent == kExponents && mantissa == kMantissas) return kNan;
  if (kSpecial == Special::kNegZero && negative && exponent == 0 && mantissa == 0) return kNan;
  double value;
  if (kSpecial == Special::kIeee && exponent == kExponents) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : kNan;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - kBias - kMantissaBits);
  } else {
    value = std::ldexp(mantissa + kMantissas + 1, static_cast<int>(exponent) - kBias - kMantissaBits);
  }
  return negative ? -value : value;
}

double Unsigned(uint32_t bits) { return bits; }
double Signed4(uint32_t bits) { return bits < 8 ? bits : static_cast<double>(bits) - 16; }

constexpr Widened kWidened[] = {
    {4, "UINT16", DType::kI32, 16, Unsigned},
    {16, "BFLOAT16", DType::kF32, 16, SmallFloat<8, 7, 127, Special::kIeee>},
    {17, "FLOAT8E4M3FN", DType::kF32, 8, SmallFloat<4, 3, 7, Special::kOneNan>},
    {18, "FLOAT8E4M3FNUZ", DType::kF32, 8, SmallFloat<4, 3, 8, Special::kNegZero>},
    {19, "FLOAT8E5M2", DType::kF32, 8, SmallFloat<5, 2, 15, Special::kIeee>},
    {20, "FLOAT8E5M2FNUZ", DType::kF32, 8, SmallFloat<5, 2, 16, Special::kNegZero>},
    {21, "UINT4", DType::kU8, 4, Unsigned},
    {22, "INT4", DType::kI8, 4, Signed4},
    {23, "FLOAT4E2M1", DType::kF32, 4, SmallFloat<2, 1, 1, Special::kNone>},
};

}  // namespace

const Widened* FindWidenedOrNull(int element_type) {
  for (const Widened& widened : kWidened) {
    if (widened.element_type == element_type) return &widened;
  }
  return nullptr;
}

}  // namespace fuselage::onnx

// The arithmetic of kernels/core/requantize.h for CUDA kernels, to the bit: on the device each operation is the
// intrinsic that rounds once and that no compiler contracts, on the host the plain operation (built with
// -ffp-contract=off).
#ifndef FUSELAGE_KERNELS_CUDA_ARITHMETIC_H_
#define FUSELAGE_KERNELS_CUDA_ARITHMETIC_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#define FUSELAGE_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define FUSELAGE_HOST_DEVICE inline
#endif

namespace fuselage::cuda {

// Its first argument on the device, its second on the host.
#if defined(__CUDA_ARCH__)
#define FUSELAGE_DEVICE_OR_HOST(device, host) (device)
#else
#define FUSELAGE_DEVICE_OR_HOST(device, host) (host)
#endif

FUSELAGE_HOST_DEVICE float ToFloat(int32_t value) {
  return FUSELAGE_DEVICE_OR_HOST(__int2float_rn(value), static_cast<float>(value));
}
FUSELAGE_HOST_DEVICE float Multiply(float a, float b) { return FUSELAGE_DEVICE_OR_HOST(__fmul_rn(a, b), a * b); }
FUSELAGE_HOST_DEVICE float Add(float a, float b) { return FUSELAGE_DEVICE_OR_HOST(__fadd_rn(a, b), a + b); }
FUSELAGE_HOST_DEVICE float MultiplyAdd(float a, float b, float c) {
  return FUSELAGE_DEVICE_OR_HOST(__fmaf_rn(a, b, c), std::fma(a, b, c));
}
FUSELAGE_HOST_DEVICE float Divide(float a, float b) { return FUSELAGE_DEVICE_OR_HOST(__fdiv_rn(a, b), a / b); }
FUSELAGE_HOST_DEVICE float Max(float a, float b) { return FUSELAGE_DEVICE_OR_HOST(fmaxf(a, b), a < b ? b : a); }
FUSELAGE_HOST_DEVICE float Min(float a, float b) { return FUSELAGE_DEVICE_OR_HOST(fminf(a, b), a < b ? a : b); }
FUSELAGE_HOST_DEVICE int32_t RoundToInt(float v) {
  return FUSELAGE_DEVICE_OR_HOST(__float2int_rn(v), static_cast<int32_t>(std::nearbyint(v)));
}

#undef FUSELAGE_DEVICE_OR_HOST

// The same for |v| <= 2^22, by a sum whose last bit is worth 1: conversions have fewer units on the device than sums.
FUSELAGE_HOST_DEVICE int32_t RoundSmallToInt(float v) {
  constexpr float kOneAndAHalf = 0x1.8p23f;
  constexpr int32_t kItsBits = 0x4b400000;
  const float sum = Add(v, kOneAndAHalf);
  int32_t bits;
  memcpy(&bits, &sum, sizeof(bits));
  return bits - kItsBits;
}

// n / divisor by a multiplication, where n < 2^31.
struct Divider {
  uint32_t reciprocal;  // 2^(31 + shift) / divisor, rounded up.
  int shift;            // The least that 2^shift >= divisor.

  FUSELAGE_HOST_DEVICE uint32_t Divide(uint32_t n) const {
    return static_cast<uint32_t>(uint64_t{n} * reciprocal >> (31 + shift));
  }
};
inline Divider MakeDivider(uint32_t divisor) {
  int shift = 0;
  while (uint64_t{1} << shift < divisor) ++shift;
  return {static_cast<uint32_t>(((uint64_t{1} << (31 + shift)) + divisor - 1) / divisor), shift};
}

// How values become output codes: the zero point, and the clamp in codes.
struct CodeOutput {
  FUSELAGE_HOST_DEVICE CodeOutput() {}
  FUSELAGE_HOST_DEVICE CodeOutput(int32_t zero_point, int32_t lo, int32_t hi)
      : zero_point(zero_point), lo(static_cast<float>(lo - zero_point)), hi(static_cast<float>(hi - zero_point)) {}

  int32_t zero_point;
  float lo, hi;  // Less the zero point.
};

// Half to even, then the zero point, then the clamp. Between whole numbers it may as well be clamped first, as a float,
// where it is cheap and nothing overflows. Not for NaN.
FUSELAGE_HOST_DEVICE int32_t ToCode(float v, const CodeOutput& output) {
  return RoundSmallToInt(Min(Max(v, output.lo), output.hi)) + output.zero_point;
}

// NaN becomes the zero point.
FUSELAGE_HOST_DEVICE int32_t QuantizeValue(float x, float scale, const CodeOutput& output) {
  const float v = Divide(x, scale);
  return ToCode(v != v ? 0.0f : v, output);
}

// acc already has its bias.
FUSELAGE_HOST_DEVICE float Rescale(int32_t acc, float multiplier) { return Multiply(ToFloat(acc), multiplier); }

// `residual` is r - z_r.
FUSELAGE_HOST_DEVICE float AddResidual(float v, int32_t residual, float residual_multiplier) {
  return MultiplyAdd(ToFloat(residual), residual_multiplier, v);
}

// Where the output stays float; acc already has its offset.
FUSELAGE_HOST_DEVICE float DequantizeAccumulator(int32_t acc, float scale, float bias) {
  return MultiplyAdd(ToFloat(acc), scale, bias);
}

// acc + a * b, four bytes each: a's of X, uint8_t or int8_t, b's signed.
template <typename X>
FUSELAGE_HOST_DEVICE int32_t MultiplyBytes(uint32_t a, uint32_t b, int32_t acc) {
#if defined(__CUDA_ARCH__)
  if constexpr (static_cast<X>(-1) < 0) return __dp4a(static_cast<int32_t>(a), static_cast<int32_t>(b), acc);
  int32_t sum;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(acc));
  return sum;
#else
  for (int shift = 0; shift < 32; shift += 8) acc += static_cast<X>(a >> shift) * static_cast<int8_t>(b >> shift);
  return acc;
#endif
}

// Bytes of two words: a selector's nibbles, the lowest first, say which, 0 to 3 of x and 4 to 7 of y.
FUSELAGE_HOST_DEVICE uint32_t PickBytes(uint32_t x, uint32_t y, uint32_t selector) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(x, y, selector);
#else
  const uint64_t bytes = uint64_t{y} << 32 | x;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) result |= static_cast<uint32_t>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
#endif
}

// Is that a rounding and a clamp to what a u8 holds? Then one instruction of the device makes two codes, in place of
// nine.
FUSELAGE_HOST_DEVICE bool IsPlain(const CodeOutput& output) {
  return output.zero_point == 0 && output.lo == 0 && output.hi == 255;
}
// The codes of a and b, and above them the lower two bytes of `above`. kPlain: IsPlain(output).
template <bool kPlain>
FUSELAGE_HOST_DEVICE uint32_t TwoCodes(float a, float b, const CodeOutput& output, uint32_t above = 0) {
#if defined(__CUDA_ARCH__)
  if constexpr (kPlain) {
    uint32_t codes;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
        : "=r"(codes)
        : "r"(__float2int_rn(b)), "r"(__float2int_rn(a)), "r"(above));
    return codes;
  }
#endif
  const uint32_t two = PickBytes(ToCode(a, output), ToCode(b, output), 0x40);
  return PickBytes(two, above, 0x5410);
}

// The larger of each byte, unsigned.
FUSELAGE_HOST_DEVICE uint32_t MaxOfBytes(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
  return __vmaxu4(a, b);
#else
  uint32_t result = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    const uint32_t x = a >> shift & 0xff, y = b >> shift & 0xff;
    result |= (x > y ? x : y) << shift;
  }
  return result;
#endif
}

// QuantizeValue for one scale, without a division and four codes at a time. Times a power of two the scale is `unit`,
// in [0.5, 1), and 1 / unit the sum of two floats. x / unit and the product of x with that sum are on the same side of
// every half below 256: so for each of the 2^23 units and the floats next to each half's multiple of it.
struct Quantizer {
  float to_unit;
  float reciprocal, rest;  // Of 1 / unit.
  float lo, hi;            // CodeOutput's, times unit.
  uint32_t zero_points;    // In both halves.

  // 256 and more, so that no sum with a zero point borrows; even, so that ties stay ties to even.
  FUSELAGE_HOST_DEVICE uint32_t Round(float x) const {
    const float clamped = Min(Max(Multiply(x, to_unit), lo), hi), v = x != x ? 0.0f : clamped;
    const float sum = Add(MultiplyAdd(v, reciprocal, Multiply(v, rest)), 0x1.8p23f + 256);
    uint32_t bits;
    memcpy(&bits, &sum, sizeof(bits));
    return bits;  // The low half counts.
  }
  FUSELAGE_HOST_DEVICE uint32_t ToCodes(float a, float b, float c, float d) const {
    return PickBytes(PickBytes(Round(a), Round(b), 0x5410) + zero_points,
                     PickBytes(Round(c), Round(d), 0x5410) + zero_points, 0x6420);
  }
};
// `flip`, 0 or 0x80, is applied to the codes: to a byte it may as well be added.
inline Quantizer MakeQuantizer(float scale, const CodeOutput& output, uint8_t flip) {
  int exponent;
  const float unit = std::frexp(scale, &exponent), reciprocal = 1 / unit;
  const auto zero_point = static_cast<uint8_t>(output.zero_point + flip);
  return {std::ldexp(1.0f, -exponent),
          reciprocal,
          static_cast<float>(1.0 / unit - reciprocal),
          output.lo * unit,
          output.hi * unit,
          zero_point * 0x10001u};
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_ARITHMETIC_H_

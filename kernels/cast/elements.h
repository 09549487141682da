// Plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_CAST_ELEMENTS_H_
#define FUSELAGE_KERNELS_CAST_ELEMENTS_H_

#include <cstring>

#include "kernels/cast/cast.h"

namespace fuselage::cast {
namespace {

// The last float below 2^31 (2^63) and the ends of the other types: what a float is clamped to before it is truncated.
template <typename To>
inline To FromFloat(float x) {
  constexpr bool kSigned = static_cast<To>(-1) < 0;
  constexpr int kBits = 8 * sizeof(To) - kSigned;  // The greatest value is 2^kBits - 1.
  constexpr float kEnd = 2.0f * static_cast<float>(uint64_t{1} << (kBits - 1));
  constexpr To kGreatest = static_cast<To>((uint64_t{1} << (kBits - 1)) - 1 + (uint64_t{1} << (kBits - 1)));
  constexpr float kLeast = kSigned ? -kEnd : 0.0f;
  const bool inside = x > kLeast && x < kEnd;  // Not NaN.
  const To truncated = static_cast<To>(inside ? x : 0.0f);
  return x >= kEnd ? kGreatest : x <= kLeast ? static_cast<To>(kLeast) : truncated;
}

template <typename To, typename From>
inline To BitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// Without branches: a subnormal becomes what it is when its exponent is moved by a product.
inline float FromHalf(Half x) {
  const uint32_t magnitude = x.bits & 0x7fffu, sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t moved = BitsAs<uint32_t>(BitsAs<float>(magnitude << 13) * 0x1p112f);
  const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u, quiet = magnitude > 0x7c00u ? 0x400000u : 0u;
  return BitsAs<float>(moved | special | quiet | sign);
}

// Rounded half to even: a subnormal's bits by the sum with 1/2, whose last bit is worth 2^-24.
inline Half HalfOf(float x) {
  const uint32_t bits = BitsAs<uint32_t>(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  const uint32_t small = BitsAs<uint32_t>(BitsAs<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t moved = magnitude - (112u << 23), normal = (moved + 0xfffu + (moved >> 13 & 1u)) >> 13;
  uint32_t half = magnitude < 0x38800000u ? small : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;  // Rounds to infinity.
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return Half{static_cast<uint16_t>(half | sign)};
}

template <typename To, typename From>
inline To CastElement(From x) {
  constexpr DType kFrom = DTypeOf<From>::value, kTo = DTypeOf<To>::value;
  if constexpr (kTo == DType::kBool) {
    return x != 0;
  } else if constexpr (kFrom == kTo) {
    return x;
  } else if constexpr (kTo == DType::kF16) {
    return HalfOf(static_cast<float>(x));
  } else if constexpr (kFrom == DType::kF32) {
    return FromFloat<To>(x);
  } else if constexpr (kFrom == DType::kI64 && kTo == DType::kF32) {
    return static_cast<float>(static_cast<double>(x));  // As the reference, which rounds twice.
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
inline void CastElements(const void* x, void* y, int64_t n) {
  const From* from = static_cast<const From*>(x);
  To* __restrict to = static_cast<To*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = CastElement<To>(from[i]);
}

inline void CastHalves(const void* x, void* y, int64_t n) {
  const Half* from = static_cast<const Half*>(x);
  float* __restrict to = static_cast<float*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = FromHalf(from[i]);
}

template <typename From>
inline void CastFrom(DType to, const void* x, void* y, int64_t n) {
  switch (to) {
    case DType::kBool: return CastElements<From, bool>(x, y, n);
    case DType::kU8: return CastElements<From, uint8_t>(x, y, n);
    case DType::kI8: return CastElements<From, int8_t>(x, y, n);
    case DType::kI32: return CastElements<From, int32_t>(x, y, n);
    case DType::kI64: return CastElements<From, int64_t>(x, y, n);
    case DType::kF16: return CastElements<From, Half>(x, y, n);
    default: return CastElements<From, float>(x, y, n);
  }
}

inline void CastAll(const Params& params, const void* x, void* y, int64_t n) {
  switch (params.from) {
    case DType::kBool:  // A byte of 0 or 1.
    case DType::kU8: return CastFrom<uint8_t>(params.to, x, y, n);
    case DType::kI8: return CastFrom<int8_t>(params.to, x, y, n);
    case DType::kI32: return CastFrom<int32_t>(params.to, x, y, n);
    case DType::kI64: return CastFrom<int64_t>(params.to, x, y, n);
    case DType::kF16: return CastHalves(x, y, n);
    default: return CastFrom<float>(params.to, x, y, n);
  }
}

}  // namespace
}  // namespace fuselage::cast

#endif  // FUSELAGE_KERNELS_CAST_ELEMENTS_H_

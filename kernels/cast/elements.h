// Plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_CAST_ELEMENTS_H_
#define FUSELAGE_KERNELS_CAST_ELEMENTS_H_

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

template <typename From, typename To>
inline void CastElements(const void* x, void* y, int64_t n) {
  const From* from = static_cast<const From*>(x);
  To* __restrict to = static_cast<To*>(y);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (DTypeOf<From>::value == DType::kF32 && DTypeOf<To>::value != DType::kF32) {
      to[i] = FromFloat<To>(from[i]);
    } else {
      to[i] = static_cast<To>(from[i]);
    }
  }
}

template <typename From>
inline void CastFrom(DType to, const void* x, void* y, int64_t n) {
  switch (to) {
    case DType::kU8: return CastElements<From, uint8_t>(x, y, n);
    case DType::kI8: return CastElements<From, int8_t>(x, y, n);
    case DType::kI32: return CastElements<From, int32_t>(x, y, n);
    case DType::kI64: return CastElements<From, int64_t>(x, y, n);
    default: return CastElements<From, float>(x, y, n);
  }
}

inline void CastAll(const Params& params, const void* x, void* y, int64_t n) {
  switch (params.from) {
    case DType::kU8: return CastFrom<uint8_t>(params.to, x, y, n);
    case DType::kI8: return CastFrom<int8_t>(params.to, x, y, n);
    case DType::kI32: return CastFrom<int32_t>(params.to, x, y, n);
    case DType::kI64: return CastFrom<int64_t>(params.to, x, y, n);
    default: return CastFrom<float>(params.to, x, y, n);
  }
}

}  // namespace
}  // namespace fuselage::cast

#endif  // FUSELAGE_KERNELS_CAST_ELEMENTS_H_

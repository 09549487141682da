// The maxima of the vector variants: each compiles its own copy (internal linkage), with its own vector types, and
// includes the intrinsics before this. `Ops` names a vector's Type and width, Load, Store and Max.
#ifndef FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_
#define FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_

#include <stdint.h>

#include "kernels/int8/max_pool2d/max_pool2d.h"

namespace fuselage::int8::max_pool2d {
namespace {

template <bool kSigned>
struct Xmm {
  using Type = __m128i;
  static constexpr int64_t kWidth = 16;
  Type lowest = _mm_set1_epi8(kSigned ? -128 : 0);
  static Type Load(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const Type*>(p)); }
  static void Store(uint8_t* p, Type v) { _mm_storeu_si128(reinterpret_cast<Type*>(p), v); }
  static Type Max(Type a, Type b) { return kSigned ? _mm_max_epi8(a, b) : _mm_max_epu8(a, b); }
};

// Its low half.
template <bool kSigned>
struct Low : Xmm<kSigned> {
  static constexpr int64_t kWidth = kLeastBytes;
  static __m128i Load(const uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  static void Store(uint8_t* p, __m128i v) { _mm_storel_epi64(reinterpret_cast<__m128i*>(p), v); }
};

// False where a run has less than a vector. The last one has some bytes again. kCount: Maxima's, or 0.
template <int kCount, typename Ops>
inline bool MaxRuns(const Ops& ops, const Maxima& m) {
  const int64_t last = m.bytes - Ops::kWidth;
  if (last < 0) return false;
  const uint8_t* from = m.from;
  uint8_t* to = m.to;
  for (int64_t run = 0; run < m.runs; ++run, from += m.from_step, to += m.to_step) {
    for (int64_t i = 0;; i = i + Ops::kWidth < last ? i + Ops::kWidth : last) {
      const uint8_t* value = from + i;
      typename Ops::Type largest = ops.lowest;
      if constexpr (kCount == 0) {
        for (int64_t k = 0; k < m.count; ++k, value += m.step) largest = ops.Max(largest, Ops::Load(value));
      } else {
        largest = Ops::Load(value);
#pragma GCC unroll 4
        for (int k = 1; k < kCount; ++k) largest = ops.Max(largest, Ops::Load(value + k * m.step));
      }
      Ops::Store(to + i, largest);
      if (i == last) break;
    }
  }
  return true;
}

template <template <bool> class Wide, bool kSigned>
void Maximize(const Maxima& m) {
  const Wide<kSigned> wide;
  const Xmm<kSigned> sixteen;
  const bool done =
      m.count == 3 ? MaxRuns<3>(wide, m) || MaxRuns<3>(sixteen, m) : MaxRuns<0>(wide, m) || MaxRuns<0>(sixteen, m);
  if (!done) MaxRuns<0>(Low<kSigned>(), m);
}

// Wide<is signed>: the Ops of the widest vectors.
template <template <bool> class Wide>
inline void MaxRowsOf(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  MaxRows(p, p.is_signed ? Maximize<Wide, true> : Maximize<Wide, false>, x, y, row_begin, row_end);
}

}  // namespace
}  // namespace fuselage::int8::max_pool2d

#endif  // FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_

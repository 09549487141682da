// What AVX2 kernels share: functions on vectors, and the end of those with u8 codes. Only for sources compiled with
// -mavx2.
#ifndef FUSELAGE_KERNELS_CORE_AVX2_H_
#define FUSELAGE_KERNELS_CORE_AVX2_H_

#include <immintrin.h>

#include <cstdint>

namespace fuselage::kernels {
namespace avx2 {
namespace {  // Local to the including source.

// OneLane's operations (ir/base/elementwise_math.h) on a vector: those that functions of activations are made of.
struct Lanes {
  using Floats = __m256;
  static inline __m256 Set(float x) { return _mm256_set1_ps(x); }
  static inline __m256 Multiply(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
  static inline __m256 MultiplyAdd(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
  static inline __m256 MultiplySubtractFrom(__m256 a, __m256 b, __m256 c) { return _mm256_fnmadd_ps(a, b, c); }
  static inline __m256 Largest(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  static inline __m256 Smallest(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
  static inline __m256 Magnitude(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
};

}  // namespace

// flip: 0x80 where the result is i8 (see UnsignedForm).
struct OutputCodes {
  __m256 limit;
  __m256i zero_point, lo, hi, flip, order;
};

static inline OutputCodes MakeOutputCodes(int32_t zero_point, int32_t lo, int32_t hi, uint8_t flip) {
  return {_mm256_set1_ps(1073741824.0f),
          _mm256_set1_epi16(static_cast<int16_t>(zero_point)),
          _mm256_set1_epi8(static_cast<char>(lo)),
          _mm256_set1_epi8(static_cast<char>(hi)),
          _mm256_set1_epi8(static_cast<char>(flip)),
          _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)};
}

// ToCode of 32 values, in order. Equal to it for every v but NaN: what is below -2^31 converts to INT_MIN, and 16-bit
// saturation before the zero point (in [0, 255]) is added moves nothing across the ends of [0, 255].
static inline __m256i ToCodes(__m256 v0, __m256 v1, __m256 v2, __m256 v3, const OutputCodes& out) {
  const __m256i r0 = _mm256_cvtps_epi32(_mm256_min_ps(v0, out.limit));
  const __m256i r1 = _mm256_cvtps_epi32(_mm256_min_ps(v1, out.limit));
  const __m256i r2 = _mm256_cvtps_epi32(_mm256_min_ps(v2, out.limit));
  const __m256i r3 = _mm256_cvtps_epi32(_mm256_min_ps(v3, out.limit));
  const __m256i r01 = _mm256_adds_epi16(_mm256_packs_epi32(r0, r1), out.zero_point);
  const __m256i r23 = _mm256_adds_epi16(_mm256_packs_epi32(r2, r3), out.zero_point);
  const __m256i q = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(r01, r23), out.order);
  return _mm256_xor_si256(_mm256_min_epu8(_mm256_max_epu8(q, out.lo), out.hi), out.flip);
}

}  // namespace avx2
}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_AVX2_H_

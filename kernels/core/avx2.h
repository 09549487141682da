// What AVX2 kernels share: functions on vectors, and the end of those with u8 codes. Only for sources compiled with
// -mavx2.
#ifndef FUSELAGE_KERNELS_CORE_AVX2_H_
#define FUSELAGE_KERNELS_CORE_AVX2_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace fuselage::kernels {
namespace avx2 {
namespace {  // Local to the including source.

// OneLane's operations (ir/base/elementwise_math.h) on a vector.
struct Lanes {
  using Floats = __m256;
  using Bits = __m256i;
  static inline __m256 Set(float x) { return _mm256_set1_ps(x); }
  static inline __m256 Add(__m256 a, __m256 b) { return _mm256_add_ps(a, b); }
  static inline __m256 Subtract(__m256 a, __m256 b) { return _mm256_sub_ps(a, b); }
  static inline __m256 Multiply(__m256 a, __m256 b) { return _mm256_mul_ps(a, b); }
  static inline __m256 MultiplyAdd(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
  static inline __m256 MultiplySubtractFrom(__m256 a, __m256 b, __m256 c) { return _mm256_fnmadd_ps(a, b, c); }
  static inline __m256 Largest(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
  static inline __m256 Smallest(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
  static inline __m256 Magnitude(__m256 x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
  static inline __m256i BitsOf(__m256 x) { return _mm256_castps_si256(x); }
  static inline __m256 FloatsOf(__m256i bits) { return _mm256_castsi256_ps(bits); }
  static inline __m256i AddBits(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
  static inline __m256i ShiftLeft(__m256i bits, int count) { return _mm256_slli_epi32(bits, count); }
};

// The first `count` bytes, of 1 to 16; the others are 0. Loads overlap where count is no power of two: a memcpy of a
// number that the compiler does not know is a call, and what it wrote cannot be loaded as a vector before it is in the
// cache.
inline __m128i LoadFirst(const uint8_t* from, int count) {
  if (count >= 8) {
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    const __m128i high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + count - 8));
    return _mm_unpacklo_epi64(low, _mm_srl_epi64(high, _mm_cvtsi32_si128(8 * (16 - count))));
  }
  uint64_t codes;
  if (count >= 4) {
    uint32_t low, high;
    std::memcpy(&low, from, sizeof(low));
    std::memcpy(&high, from + count - 4, sizeof(high));
    codes = low | uint64_t{high} << 8 * (count - 4);
  } else {
    codes = from[0] | from[count / 2] << 8 * (count / 2) | from[count - 1] << 8 * (count - 1);
  }
  return _mm_cvtsi64_si128(static_cast<int64_t>(codes));
}

// Stores them so.
inline void StoreFirst(__m128i codes, int count, uint8_t* to) {
  if (count >= 8) {
    const __m128i high =
        _mm_or_si128(_mm_srl_epi64(codes, _mm_cvtsi32_si128(8 * (count - 8))),
                     _mm_sll_epi64(_mm_unpackhi_epi64(codes, codes), _mm_cvtsi32_si128(8 * (16 - count))));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), codes);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + count - 8), high);
    return;
  }
  const uint64_t all = static_cast<uint64_t>(_mm_cvtsi128_si64(codes));
  if (count >= 4) {
    const uint32_t low = static_cast<uint32_t>(all), high = static_cast<uint32_t>(all >> 8 * (count - 4));
    std::memcpy(to, &low, sizeof(low));
    std::memcpy(to + count - 4, &high, sizeof(high));
  } else {
    to[0] = static_cast<uint8_t>(all);
    to[count / 2] = static_cast<uint8_t>(all >> 8 * (count / 2));
    to[count - 1] = static_cast<uint8_t>(all >> 8 * (count - 1));
  }
}

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

// 16 channels of int16, or 8 of int32, in a vector: transforms.h' V. Include the intrinsics first; everything is local to
// the including source.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_YMM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_YMM_H_

#include <stdint.h>

namespace fuselage::int8::conv2d::winograd {
namespace {

struct Ymm {
  using Vector = __m256i;
  static inline Vector Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static inline void Store(void* p, Vector v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  static inline Vector LoadCodes(const void* p, uint8_t flip) {
    const __m128i codes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_cvtepi8_epi16(_mm_xor_si128(codes, _mm_set1_epi8(static_cast<char>(flip))));
  }
  static inline Vector Add16(Vector a, Vector b) { return _mm256_add_epi16(a, b); }
  static inline Vector Sub16(Vector a, Vector b) { return _mm256_sub_epi16(a, b); }
  template <int n>
  static inline Vector Shift16(Vector a) {
    return _mm256_slli_epi16(a, n);
  }
  static inline Vector Add32(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static inline Vector Sub32(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  template <int n>
  static inline Vector Shift32(Vector a) {
    return _mm256_slli_epi32(a, n);
  }
  static inline Vector Multiply32(Vector a, int b) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(b)); }
  static inline Vector ShiftRight32(Vector a, int n) { return _mm256_srai_epi32(a, n); }
};

}  // namespace
}  // namespace fuselage::int8::conv2d::winograd

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_YMM_H_

// few.h with 8 lanes, for any product. Everything is local to the including source: see loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_FEW_AVX2_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_FEW_AVX2_H_

#include "kernels/int8/conv2d/core/multiply_avx2.h"
#include "kernels/int8/conv2d/direct/few.h"

namespace fuselage::int8::conv2d::direct {
namespace {

template <typename Product>
struct FewLanes : Product {
  using Vector = __m256i;
  static constexpr int kDwords = 8;
  static inline Vector Zero() { return _mm256_setzero_si256(); }
  static inline Vector Load(const char* p) { return LoadVector(p); }
  static inline Vector LoadFirst(const char* p, int n) {
    const Vector lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_epi32(reinterpret_cast<const int*>(p), _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lanes));
  }
  static inline __m128i Sums(const Vector* v) {
    const Vector pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  }
};

}  // namespace
}  // namespace fuselage::int8::conv2d::direct

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DIRECT_FEW_AVX2_H_

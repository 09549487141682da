#include "kernels/core/avx512.h"
#include "kernels/reproducible/loops.h"

namespace fuselage::reproducible {

// 28 registers of sums, 2 of b, 1 of a.
void FUSELAGE_AVX512_VNNI::Tile(const float* a, const float* b, int64_t depth, float* sums, int64_t stride) {
  __m512 sum[kAvx512Rows][2];
#pragma GCC unroll 14
  for (int i = 0; i < kAvx512Rows; ++i) {
    sum[i][0] = _mm512_loadu_ps(sums + i * stride);
    sum[i][1] = _mm512_loadu_ps(sums + i * stride + 16);
  }
  for (int64_t k = 0; k < depth; ++k) {
    const __m512 b0 = _mm512_loadu_ps(b + k * kAvx512Columns), b1 = _mm512_loadu_ps(b + k * kAvx512Columns + 16);
#pragma GCC unroll 14
    for (int i = 0; i < kAvx512Rows; ++i) {
      const __m512 x = _mm512_set1_ps(a[i * kRowStride + k]);
      sum[i][0] = _mm512_fmadd_ps(x, b0, sum[i][0]);
      sum[i][1] = _mm512_fmadd_ps(x, b1, sum[i][1]);
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < kAvx512Rows; ++i) {
    _mm512_storeu_ps(sums + i * stride, sum[i][0]);
    _mm512_storeu_ps(sums + i * stride + 16, sum[i][1]);
  }
}

void FUSELAGE_AVX512_VNNI::Depthwise(const float* const* x, const float* w, int64_t taps, int64_t channels,
                                     float* sums) {
  DepthwiseLoop(x, w, taps, channels, sums);
}

void FUSELAGE_AVX512_VNNI::Exponentials(const float* x, float largest, int64_t n, float* y) {
  ExponentialsLoop(x, largest, n, y);
}

}  // namespace fuselage::reproducible

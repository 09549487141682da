#include <immintrin.h>

#include "kernels/reproducible/loops.h"

namespace fuselage::reproducible {

// 12 registers of sums, 2 of b, 1 of a.
void avx2::Tile(const float* a, const float* b, int64_t depth, float* sums, int64_t stride) {
  __m256 sum[kAvx2Rows][2];
#pragma GCC unroll 6
  for (int i = 0; i < kAvx2Rows; ++i) {
    sum[i][0] = _mm256_loadu_ps(sums + i * stride);
    sum[i][1] = _mm256_loadu_ps(sums + i * stride + 8);
  }
  for (int64_t k = 0; k < depth; ++k) {
    const __m256 b0 = _mm256_loadu_ps(b + k * kAvx2Columns), b1 = _mm256_loadu_ps(b + k * kAvx2Columns + 8);
#pragma GCC unroll 6
    for (int i = 0; i < kAvx2Rows; ++i) {
      const __m256 x = _mm256_broadcast_ss(a + i * kRowStride + k);
      sum[i][0] = _mm256_fmadd_ps(x, b0, sum[i][0]);
      sum[i][1] = _mm256_fmadd_ps(x, b1, sum[i][1]);
    }
  }
#pragma GCC unroll 6
  for (int i = 0; i < kAvx2Rows; ++i) {
    _mm256_storeu_ps(sums + i * stride, sum[i][0]);
    _mm256_storeu_ps(sums + i * stride + 8, sum[i][1]);
  }
}

void avx2::Depthwise(const float* const* x, const float* w, int64_t taps, int64_t channels, float* sums) {
  DepthwiseLoop(x, w, taps, channels, sums);
}

void avx2::Exponentials(const float* x, float largest, int64_t n, float* y) { ExponentialsLoop(x, largest, n, y); }

}  // namespace fuselage::reproducible

#include <immintrin.h>

#include "kernels/core/testing/peak.h"

namespace fuselage::kernels {

int64_t avx2::MultiplyAtPeak(int64_t repetitions) {
  constexpr int kSums = 12, kMacs = 16;
  __m256i sums[kSums], x = _mm256_set1_epi16(1), w = _mm256_set1_epi16(3);
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_setzero_si256();
  for (int64_t n = 0; n < repetitions; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      __asm__ volatile("" : "+x"(x), "+x"(w));  // Not the same product each time.
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(x, w));
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) __asm__ volatile("" : : "x"(sums[i]));
  return repetitions * kSums * kMacs;
}

}  // namespace fuselage::kernels

#include "kernels/core/avx_vnni.h"
#include "kernels/core/testing/peak.h"

namespace fuselage::kernels {

int64_t FUSELAGE_AVX_VNNI::MultiplyAtPeak(int64_t repetitions) {
  constexpr int kSums = 12, kMacs = 32;
  __m256i sums[kSums], x = _mm256_set1_epi8(1), w = _mm256_set1_epi8(3);
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_set1_epi32(i);  // Not all the same: one would do for all.
  for (int64_t n = 0; n < repetitions; ++n) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_dpbusd_avx_epi32(sums[i], x, w);
  }
  // The sums are needed, whatever they are.
  __m256i total = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kSums; ++i) total = _mm256_add_epi32(total, sums[i]);
  volatile int32_t sink = _mm_cvtsi128_si32(_mm256_castsi256_si128(total));
  static_cast<void>(sink);
  return repetitions * kSums * kMacs;
}

}  // namespace fuselage::kernels

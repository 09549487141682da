#include "kernels/core/avx512.h"
#include "kernels/core/testing/peak.h"

namespace fuselage::kernels {

int64_t FUSELAGE_AVX512_VNNI::MultiplyAtPeak(int64_t repetitions) {
  constexpr int kSums = 16, kMacs = 64;
  __m512i sums[kSums], x = _mm512_set1_epi8(1), w = _mm512_set1_epi8(3);
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_setzero_si512();
  for (int64_t n = 0; n < repetitions; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], x, w);
  }
  // The sums are needed, whatever they are.
  __m512i total = sums[0];
#pragma GCC unroll 16
  for (int i = 1; i < kSums; ++i) total = _mm512_add_epi32(total, sums[i]);
  volatile int32_t sink = _mm_cvtsi128_si32(_mm512_castsi512_si128(total));
  static_cast<void>(sink);
  return repetitions * kSums * kMacs;
}

}  // namespace fuselage::kernels

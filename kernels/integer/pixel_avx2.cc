#include <immintrin.h>

#include "kernels/integer/pixel.h"

namespace fuselage::integer::depthwise {
namespace {

template <bool kSigned>
inline __m256i Widened(__m128i codes) {
  return kSigned ? _mm256_cvtepi8_epi16(codes) : _mm256_cvtepu8_epi16(codes);
}

template <bool kSigned>
inline void Blocks(const Pixel& p) {
  const int16_t* weight = p.weight;
  for (int64_t block = 0; block < p.channels; block += kLanes) {
    const int64_t c = block < p.channels - kLanes ? block : p.channels - kLanes;
    __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p.first + c));
    __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p.first + c + 8));
    for (int64_t pair = 0; pair < p.pairs; ++pair, weight += 2 * kLanes) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p.taps[2 * pair] + c));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p.taps[2 * pair + 1] + c));
      const __m256i low_weight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight));
      const __m256i high_weight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight + kLanes));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(Widened<kSigned>(_mm_unpacklo_epi8(a, b)), low_weight));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(Widened<kSigned>(_mm_unpackhi_epi8(a, b)), high_weight));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p.sums + c), low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p.sums + c + 8), high);
  }
}

}  // namespace

void avx2::Run(const Pixel& p) { p.is_signed ? Blocks<true>(p) : Blocks<false>(p); }

}  // namespace fuselage::integer::depthwise

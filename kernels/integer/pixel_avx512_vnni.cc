#include "kernels/core/avx512.h"
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
    __m512i sums = _mm512_loadu_si512(p.first + c);
    for (int64_t pair = 0; pair < p.pairs; ++pair, weight += 2 * kLanes) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p.taps[2 * pair] + c));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p.taps[2 * pair + 1] + c));
      const __m256i low = Widened<kSigned>(_mm_unpacklo_epi8(a, b)), high = Widened<kSigned>(_mm_unpackhi_epi8(a, b));
      const __m512i pairs = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
      sums = _mm512_dpwssd_epi32(sums, pairs, _mm512_loadu_si512(weight));
    }
    _mm512_storeu_si512(p.sums + c, sums);
  }
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Pixel& p) { p.is_signed ? Blocks<true>(p) : Blocks<false>(p); }

}  // namespace fuselage::integer::depthwise

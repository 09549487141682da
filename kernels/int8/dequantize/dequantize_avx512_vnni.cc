#include "kernels/core/avx512.h"
#include "kernels/int8/dequantize/dequantize_pixels.h"

namespace fuselage::int8::dequantize {

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const uint8_t* x, float* y, int64_t begin, int64_t end) {
  const __m128i flip = _mm_set1_epi8(static_cast<char>(p.flip));
  const __m512i zero_point = _mm512_set1_epi32(p.zero_point);
  const __m512 scale = _mm512_set1_ps(p.scale);
  DequantizePixels<32>(p, x, y, begin, end, [&](const uint8_t* from, float* to) {
    for (int i = 0; i < 32; i += 16) {
      const __m128i codes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)), flip);
      const __m512i centered = _mm512_sub_epi32(_mm512_cvtepu8_epi32(codes), zero_point);
      _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_cvtepi32_ps(centered), scale));
    }
  });
}

}  // namespace fuselage::int8::dequantize

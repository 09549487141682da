#include <immintrin.h>

#include "kernels/int8/dequantize/dequantize_pixels.h"

namespace fuselage::int8::dequantize {

void avx2::Run(const Params& p, const uint8_t* x, float* y, int64_t begin, int64_t end) {
  const __m128i flip = _mm_set1_epi8(static_cast<char>(p.flip));
  const __m256i zero_point = _mm256_set1_epi32(p.zero_point);
  const __m256 scale = _mm256_set1_ps(p.scale);
  DequantizePixels<32>(p, x, y, begin, end, [&](const uint8_t* from, float* to) {
    for (int i = 0; i < 32; i += 8) {
      const __m128i codes = _mm_xor_si128(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + i)), flip);
      const __m256i centered = _mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), zero_point);
      _mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_cvtepi32_ps(centered), scale));
    }
  });
}

}  // namespace fuselage::int8::dequantize

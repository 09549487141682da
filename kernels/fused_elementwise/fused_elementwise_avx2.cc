#include "kernels/core/avx2.h"
#include "kernels/fused_elementwise/block.h"

namespace fuselage::fused_elementwise {

void avx2::Run(const Params& params, const float* const* inputs, float* y, float* scratch, int64_t n) {
  RunBlock(params, inputs, y, scratch, n);
}

void avx2::Scale(const ScaleParams& p, const uint8_t* x, const float* factors, uint8_t* y, int64_t n) {
  const __m128i flip = _mm_set1_epi8(static_cast<char>(p.x.flip));
  const __m256i zero_point = _mm256_set1_epi32(p.x.zero_point);
  const __m256 x_scale = _mm256_set1_ps(p.x.scale), y_scale = _mm256_set1_ps(p.y.scale);
  const kernels::avx2::OutputCodes output = kernels::avx2::MakeOutputCodes(p.y.zero_point, p.y.lo, p.y.hi, p.y.flip);
  const __m256i all = _mm256_set1_epi32(p.only_negative ? 0 : -1);
  ScaleBlock<32>(x, factors, y, n, [&](const uint8_t* from, const float* by, uint8_t* to) {
    __m256 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m128i codes = _mm_xor_si128(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + 8 * i)), flip);
      const __m256i centered = _mm256_sub_epi32(_mm256_cvtepu8_epi32(codes), zero_point);
      const __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(centered), x_scale);
      const __m256 product = _mm256_mul_ps(value, _mm256_loadu_ps(by + 8 * i));
      const __m256 scaled = _mm256_castsi256_ps(_mm256_or_si256(all, centered));  // Sign bits decide.
      v[i] = _mm256_div_ps(_mm256_blendv_ps(value, product, scaled), y_scale);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), kernels::avx2::ToCodes(v[0], v[1], v[2], v[3], output));
  });
}

}  // namespace fuselage::fused_elementwise

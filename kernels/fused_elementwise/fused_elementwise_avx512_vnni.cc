#include <type_traits>

#include "kernels/core/avx512.h"
#include "kernels/fused_elementwise/block.h"
#include "kernels/int8/quantize/code_quotients_avx512.h"

namespace fuselage::fused_elementwise {

void FUSELAGE_AVX512_VNNI::Run(const Params& params, const float* const* inputs, float* y, float* scratch, int64_t n) {
  RunBlock(params, inputs, y, scratch, n);
}

void FUSELAGE_AVX512_VNNI::Scale(const ScaleParams& p, const uint8_t* x, const float* factors, uint8_t* y, int64_t n) {
  namespace core = kernels::FUSELAGE_AVX512_VNNI;
  const __m128i flip = _mm_set1_epi8(static_cast<char>(p.x.flip));
  const __m512i zero_point = _mm512_set1_epi32(p.x.zero_point);
  const __m512 x_scale = _mm512_set1_ps(p.x.scale);
  const int8::quantize::CodeQuotients by_scale(p.y.scale);
  const core::OutputCodes output = core::MakeOutputCodes(p.y.zero_point, p.y.lo, p.y.hi, p.y.flip);
  // plain: all are scaled, and none too far for a quotient.
  const auto run = [&](auto plain) __attribute__((always_inline)) {
    ScaleBlock<64>(x, factors, y, n, [&](const uint8_t* from, const float* by, uint8_t* to) {
      __m512 v[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m128i codes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from) + i), flip);
        const __m512i centered = _mm512_sub_epi32(_mm512_cvtepu8_epi32(codes), zero_point);
        const __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(centered), x_scale),
                     factor = _mm512_loadu_ps(by + 16 * i);
        if (plain) {
          v[i] = by_scale.Quotient(_mm512_mul_ps(value, factor));
          continue;
        }
        const __mmask16 all = p.only_negative ? 0 : 0xffff;
        const __mmask16 scaled = all | _mm512_cmpgt_epi32_mask(_mm512_setzero_si512(), centered);
        v[i] = _mm512_mask_mul_ps(value, scaled, value, factor);
      }
      if (!plain) by_scale.Divide(v);
      _mm512_storeu_si512(to, core::ToCodes(v[0], v[1], v[2], v[3], output));
    });
  };
  const bool plain = !p.only_negative && by_scale.Covers(256 * p.x.scale * p.most_factor);
  plain ? run(std::true_type()) : run(std::false_type());
}

}  // namespace fuselage::fused_elementwise

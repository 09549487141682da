#include "kernels/core/avx512.h"
#include "kernels/int8/quantize/quantize_interleave.h"

namespace fuselage::int8::quantize {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

// NaN becomes 0, and so the zero point.
inline __m512 Divide(const float* x, __m512 scale) {
  const __m512 v = _mm512_loadu_ps(x);
  return _mm512_maskz_div_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v, scale);
}

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end) {
  const __m512 scale = _mm512_set1_ps(p.scale);
  const core::OutputCodes codes = core::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  QuantizeImages<64>(p, x, y, begin, end, [&](const float* from, uint8_t* to) {
    _mm512_storeu_si512(to, core::ToCodes(Divide(from, scale), Divide(from + 16, scale), Divide(from + 32, scale),
                                          Divide(from + 48, scale), codes));
  });
}

}  // namespace fuselage::int8::quantize

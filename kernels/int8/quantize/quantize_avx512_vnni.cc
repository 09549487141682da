#include "kernels/core/avx512.h"
#include "kernels/int8/quantize/code_quotients_avx512.h"
#include "kernels/int8/quantize/quantize_interleave.h"

namespace fuselage::int8::quantize {

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end) {
  namespace core = kernels::FUSELAGE_AVX512_VNNI;
  const CodeQuotients by_scale(p.scale);
  const core::OutputCodes codes = core::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  QuantizeImages<64>(p, x, y, begin, end, [&](const float* from, uint8_t* to) {
    __m512 v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v[i] = _mm512_loadu_ps(from + 16 * i);
    by_scale.Divide(v);
    _mm512_storeu_si512(to, core::ToCodes(v[0], v[1], v[2], v[3], codes));
  });
}

}  // namespace fuselage::int8::quantize

#include "kernels/core/avx512.h"
#include "kernels/int8/quantize/quantize_interleave.h"

namespace fuselage::int8::quantize {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

// NaN becomes 0, and so the zero point.
inline __m512 Divide(__m512 x, __m512 scale) {
  return _mm512_maskz_div_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, scale);
}

// Quotients by the reciprocal: a division takes longer. The first correction leaves an error of hardly more than half
// a unit in the last place; of such a quotient, with a rounded reciprocal, the second makes the rounded one
// (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990). Both remainders are
// exact, but for quotients so small that their code is the zero point anyhow.
struct Reciprocal {
  __m512 scale, reciprocal;
  __m512i most;  // Magnitudes up to this one, as integers; -1: none.

  explicit Reciprocal(float s) : scale(_mm512_set1_ps(s)), reciprocal(_mm512_set1_ps(1 / s)), most() {
    const bool fits = s > 0x1p-60f && s < 0x1p60f;
    const __m512i limit = _mm512_castps_si512(_mm512_set1_ps(s * 0x1p30f));
    most = fits ? limit : _mm512_set1_epi32(-1);
  }

  // Which of x are greater, or not numbers?
  __mmask16 Beyond(__m512 x) const {
    const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_cmpgt_epi32_mask(magnitude, most);
  }
  __m512 Quotient(__m512 x) const {
    __m512 q = _mm512_mul_ps(x, reciprocal);
    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, scale, x), reciprocal, q);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, scale, x), reciprocal, q);
  }
};

}  // namespace

void FUSELAGE_AVX512_VNNI::Run(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end) {
  const Reciprocal by(p.scale);
  const core::OutputCodes codes = core::MakeOutputCodes(p.zero_point, p.lo, p.hi, p.flip);
  QuantizeImages<64>(p, x, y, begin, end, [&](const float* from, uint8_t* to) {
    __m512 v[4];
    __mmask16 beyond = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm512_loadu_ps(from + 16 * i);
      beyond |= by.Beyond(v[i]);
    }
#pragma GCC unroll 4
    for (__m512& value : v) value = beyond == 0 ? by.Quotient(value) : Divide(value, by.scale);
    _mm512_storeu_si512(to, core::ToCodes(v[0], v[1], v[2], v[3], codes));
  });
}

}  // namespace fuselage::int8::quantize

// Division by a scale, native or emulated (see avx512.h).
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_CODE_QUOTIENTS_AVX512_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_CODE_QUOTIENTS_AVX512_H_

#include "kernels/core/avx512.h"

namespace fuselage::int8::quantize {
namespace {  // Local to the including source.

// Quotients x / scale, by the reciprocal: a division takes longer. The first correction leaves an error of hardly more
// than half a unit in the last place; of such a quotient, with a rounded reciprocal, the second makes the rounded one
// (P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990). Both remainders are
// exact, but for quotients so small that their code is the zero point anyhow.
class CodeQuotients {
 public:
  explicit CodeQuotients(float scale) : scale_(_mm512_set1_ps(scale)), reciprocal_(_mm512_set1_ps(1 / scale)) {
    most_ = scale > 0x1p-60f && scale < 0x1p60f ? scale * 0x1p30f : -1;
  }

  // Are the quotients of magnitudes up to this one Quotient's?
  bool Covers(float magnitude) const { return magnitude <= most_; }
  __m512 Quotient(__m512 x) const {
    __m512 q = _mm512_mul_ps(x, reciprocal_);
    q = _mm512_fmadd_ps(_mm512_fnmadd_ps(q, scale_, x), reciprocal_, q);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q, scale_, x), reciprocal_, q);
  }

  // Of four vectors of any values. NaN becomes 0, and so the zero point.
  __attribute__((always_inline)) void Divide(__m512* v) const {
    const __m512i most = most_ < 0 ? _mm512_set1_epi32(-1) : _mm512_castps_si512(_mm512_set1_ps(most_));
    __mmask16 beyond = 0;  // Which are greater, or not numbers?
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i magnitude = _mm512_and_si512(_mm512_castps_si512(v[i]), _mm512_set1_epi32(0x7fffffff));
      beyond |= _mm512_cmpgt_epi32_mask(magnitude, most);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v[i] = beyond == 0 ? Quotient(v[i]) : Exact(v[i]);
  }

 private:
  __m512 Exact(__m512 x) const { return _mm512_maskz_div_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x, scale_); }

  __m512 scale_, reciprocal_;
  float most_;  // Magnitudes up to this one; -1: none.
};

}  // namespace
}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_CODE_QUOTIENTS_AVX512_H_

// Accumulators to outputs, a pixel's sixteen channels in a vector: kernels/core/requantize.h in AVX-512. Everything is
// local to the including source: see loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_AVX512_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_AVX512_H_

#include <string.h>

#include "kernels/core/activate_avx512.h"
#include "kernels/core/avx512.h"
#include "kernels/int8/conv2d/core/output_form.h"

namespace fuselage::int8::conv2d {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

// The constants of one panel, and those of all; stores of codes may alias what OutputStage points to.
struct PanelConstants {
  __m512i bias;
  __m512 multiplier, float_bias;
};
struct StageConstants {
  __m512i residual_zero_point;
  __m512 residual_multiplier;
  __m128i residual_flip;
  core::OutputCodes codes;
  const ElementwiseInstruction* function;
  float function_multiplier;
  bool relu;
};

inline PanelConstants PanelConstantsOf(const OutputStage& stage, int channel) {
  return {_mm512_loadu_si512(stage.bias + channel), _mm512_loadu_ps(stage.multiplier + channel),
          stage.is_float ? _mm512_loadu_ps(stage.float_bias + channel) : _mm512_setzero_ps()};
}

inline StageConstants StageConstantsOf(const OutputStage& stage) {
  return {_mm512_set1_epi32(stage.residual_zero_point),
          _mm512_set1_ps(stage.residual_multiplier),
          _mm_set1_epi8(static_cast<char>(stage.residual_flip)),
          core::MakeOutputCodes(stage.zero_point, stage.lo, stage.hi, stage.output_flip),
          stage.function,
          stage.function_multiplier,
          stage.relu};
}

// The first `count` channels of a pixel; all sixteen where kWhole.
template <bool kWhole>
inline __m128i LoadCodes(const uint8_t* from, int count) {
  if (kWhole) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  uint8_t some[kPanel] = {};
  memcpy(some, from, count);
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(some));
}

// One pixel of one panel before it is rounded, without its residual,
inline __m512 ValuesOf(const PanelConstants& panel, __m512i sum) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sum, panel.bias)), panel.multiplier);
}
// and with it.
template <typename Form>
inline __m512 AddResidual(const StageConstants& c, __m128i residual, __m512 v) {
  __m512i r;
  if (Form::kind == OutputKind::kPlainCodes) {
    r = _mm512_cvtepu8_epi32(residual);
  } else {
    r = _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm_xor_si128(residual, c.residual_flip)), c.residual_zero_point);
  }
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(r), c.residual_multiplier, v);
}

// The codes of four vectors of values, one after the other.
template <typename Form>
inline __m512i CodesOf(const StageConstants& c, __m512* v) {
  if (Form::kind == OutputKind::kActivatedCodes) core::ActivateVectors<4>(*c.function, c.function_multiplier, v);
  if (Form::kind != OutputKind::kPlainCodes) return core::ToCodes(v[0], v[1], v[2], v[3], c.codes);
  const __m512i r01 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
  const __m512i r23 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
  return _mm512_permutexvar_epi32(c.codes.order, _mm512_packus_epi16(r01, r23));
}

// The first `count` channels of a pixel as floats; all sixteen where kWhole.
template <bool kWhole>
inline void StoreFloats(const StageConstants& c, const PanelConstants& panel, __m512i sum, int count, void* to) {
  const __m512 a = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, panel.bias));
  __m512 y = _mm512_fmadd_ps(a, panel.multiplier, panel.float_bias);
  if (c.function != nullptr) core::ActivateVectors<1>(*c.function, c.function_multiplier, &y);
  // As `y < 0 ? 0 : y`: -0 stays.
  const __m512 zero = _mm512_setzero_ps();
  if (c.relu) y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(y, zero, _CMP_LT_OQ), zero);
  if (kWhole) {
    _mm512_storeu_ps(static_cast<float*>(to), y);
  } else {
    memcpy(to, &y, count * sizeof(float));
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_AVX512_H_

// Accumulators to outputs, sixty-four at a time: kernels/core/requantize.h in AVX-512. Everything is local to the
// including source: see primitives.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_OUTPUT_AVX512_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_OUTPUT_AVX512_H_

#include "kernels/core/activate_avx512.h"
#include "kernels/core/avx512.h"
#include "kernels/int8/conv2d/primitives.h"

namespace fuselage::int8::conv2d {
namespace {

namespace core = kernels::FUSELAGE_AVX512_VNNI;

// Of one panel.
struct WidePanel {
  __m512i bias;
  __m512 multiplier;
};

inline WidePanel WidePanelOf(const OutputStage& stage, int channel) {
  return {_mm512_loadu_si512(stage.bias + channel), _mm512_loadu_ps(stage.multiplier + channel)};
}

// Of all of them.
struct WideConstants {
  __m512i residual_zero_point;
  __m512 residual_multiplier;
  __m128i residual_flip;
  core::OutputCodes codes;
  const ElementwiseInstruction* function;
  float function_multiplier;
};

inline WideConstants WideConstantsOf(const OutputStage& stage) {
  return {_mm512_set1_epi32(stage.residual_zero_point),
          _mm512_set1_ps(stage.residual_multiplier),
          _mm_set1_epi8(static_cast<char>(stage.residual_flip)),
          core::MakeOutputCodes(stage.zero_point, stage.lo, stage.hi, stage.output_flip),
          stage.function,
          stage.function_multiplier};
}

// One pixel of one panel before it is rounded. `residual`: its sixteen codes.
template <bool kResidual>
inline __m512 WideValues(const WideConstants& c, const WidePanel& panel, __m512i sum, const uint8_t* residual) {
  const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(sum, panel.bias)), panel.multiplier);
  if (!kResidual) return v;
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(residual));
  const __m512i r =
      _mm512_sub_epi32(_mm512_cvtepu8_epi32(_mm_xor_si128(codes, c.residual_flip)), c.residual_zero_point);
  return _mm512_fmadd_ps(_mm512_cvtepi32_ps(r), c.residual_multiplier, v);
}

// The codes of four vectors of values.
template <bool kActivated>
inline __m512i WideCodes(const WideConstants& c, __m512* v) {
  if (kActivated) core::ActivateVectors<4>(*c.function, c.function_multiplier, v);
  return core::ToCodes(v[0], v[1], v[2], v[3], c.codes);
}

// use(residual, activated) as constants.
template <bool kValue>
struct BoolConstant {
  static constexpr bool value = kValue;
};
template <typename Use>
inline void WithCodesKind(const OutputStage& stage, Use use) {
  if (stage.function != nullptr) {
    return stage.has_residual ? use(BoolConstant<true>(), BoolConstant<true>())
                              : use(BoolConstant<false>(), BoolConstant<true>());
  }
  return stage.has_residual ? use(BoolConstant<true>(), BoolConstant<false>())
                            : use(BoolConstant<false>(), BoolConstant<false>());
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_OUTPUT_AVX512_H_

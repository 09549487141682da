// Sixteen accumulators to sixteen outputs: kernels/core/requantize.h in AVX2. Everything is local to the including
// source: see primitives.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_OUTPUT_AVX2_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_OUTPUT_AVX2_H_

#include <string.h>

#include "kernels/core/activate_avx2.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

// The constants of one panel, in registers or on the stack: stores of codes may alias what OutputStage points to.
struct PanelConstants {
  __m256i bias[2];
  __m256 multiplier[2], float_bias[2];
  __m256 residual_multiplier, negative_to_zero;
  __m256i residual_zero_point, zero_point;
  __m128i lo, hi, residual_flip, output_flip;
  const ElementwiseInstruction* function;
  float function_multiplier;
};

inline PanelConstants PanelConstantsOf(const OutputStage& stage, int channel) {
  PanelConstants c;
  for (int i = 0; i < 2; ++i) {
    c.bias[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(stage.bias + channel + 8 * i));
    c.multiplier[i] = _mm256_loadu_ps(stage.multiplier + channel + 8 * i);
    c.float_bias[i] = stage.is_float ? _mm256_loadu_ps(stage.float_bias + channel + 8 * i) : _mm256_setzero_ps();
  }
  c.residual_multiplier = _mm256_set1_ps(stage.residual_multiplier);
  c.negative_to_zero = _mm256_castsi256_ps(_mm256_set1_epi32(stage.relu ? -1 : 0));
  c.residual_zero_point = _mm256_set1_epi32(stage.residual_zero_point);
  c.zero_point = _mm256_set1_epi16(static_cast<int16_t>(stage.zero_point));
  c.lo = _mm_set1_epi8(static_cast<char>(stage.lo));
  c.hi = _mm_set1_epi8(static_cast<char>(stage.hi));
  c.residual_flip = _mm_set1_epi8(static_cast<char>(stage.residual_flip));
  c.output_flip = _mm_set1_epi8(static_cast<char>(stage.output_flip));
  c.function = stage.function;
  c.function_multiplier = stage.function_multiplier;
  return c;
}

// The nearest integer, before the zero point. What is too large becomes 2^30 as in ToCode; what is too small becomes
// INT32_MIN, and either way the packs that follow saturate it to the same word as ToCode's -2^30.
inline __m256i RoundedAvx2(__m256 v) { return _mm256_cvtps_epi32(_mm256_min_ps(v, _mm256_set1_ps(1073741824.0f))); }

inline __m256 ScaledAvx2(const PanelConstants& c, int i, __m256i acc) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(acc, c.bias[i])), c.multiplier[i]);
}

// The codes of the panel's 16 channels, in order.
template <bool kResidual, bool kActivated>
inline __m128i CodesAvx2(const PanelConstants& c, __m256i acc0, __m256i acc1, __m128i residual) {
  __m256 v[2] = {ScaledAvx2(c, 0, acc0), ScaledAvx2(c, 1, acc1)};
  if (kResidual) {
    residual = _mm_xor_si128(residual, c.residual_flip);
    const __m256i r0 = _mm256_sub_epi32(_mm256_cvtepu8_epi32(residual), c.residual_zero_point);
    const __m256i r1 = _mm256_sub_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(residual, 8)), c.residual_zero_point);
    v[0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(r0), c.residual_multiplier, v[0]);
    v[1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(r1), c.residual_multiplier, v[1]);
  }
  if (kActivated) kernels::avx2::ActivateVectors<2>(*c.function, c.function_multiplier, v);
  // Both packs saturate, and so does the addition between them: the clamp to [lo, hi], which lies within, still sees
  // on which side of it a value was.
  const __m256i words = _mm256_adds_epi16(_mm256_packs_epi32(RoundedAvx2(v[0]), RoundedAvx2(v[1])), c.zero_point);
  // words = 0..3 8..11 | 4..7 12..15
  const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  const __m128i codes = _mm_shuffle_epi32(bytes, _MM_SHUFFLE(3, 1, 2, 0));
  return _mm_xor_si128(_mm_min_epu8(_mm_max_epu8(codes, c.lo), c.hi), c.output_flip);
}

inline __m256 FloatsAvx2(const PanelConstants& c, int i, __m256i acc) {
  const __m256 a = _mm256_cvtepi32_ps(_mm256_add_epi32(acc, c.bias[i]));
  const __m256 y = _mm256_fmadd_ps(a, c.multiplier[i], c.float_bias[i]);
  // As `y < 0 ? 0 : y` where there is a ReLU: -0 stays.
  const __m256 negative = _mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_LT_OQ);
  return _mm256_andnot_ps(_mm256_and_ps(negative, c.negative_to_zero), y);
}

// Activated: by a function that is no clamp.
enum class OutputKind { kCodes, kCodesWithResidual, kActivated, kActivatedWithResidual, kFloat };

inline OutputKind OutputKindOf(const OutputStage& stage) {
  if (stage.is_float) return OutputKind::kFloat;
  if (stage.function != nullptr) {
    return stage.has_residual ? OutputKind::kActivatedWithResidual : OutputKind::kActivated;
  }
  return stage.has_residual ? OutputKind::kCodesWithResidual : OutputKind::kCodes;
}

// use(kind) with the kind as a constant.
template <OutputKind kKind>
struct KindConstant {
  static constexpr OutputKind value = kKind;
};
template <typename Use>
inline void WithOutputKind(const OutputStage& stage, Use use) {
  switch (OutputKindOf(stage)) {
    case OutputKind::kCodes: return use(KindConstant<OutputKind::kCodes>());
    case OutputKind::kCodesWithResidual: return use(KindConstant<OutputKind::kCodesWithResidual>());
    case OutputKind::kActivated: return use(KindConstant<OutputKind::kActivated>());
    case OutputKind::kActivatedWithResidual: return use(KindConstant<OutputKind::kActivatedWithResidual>());
    case OutputKind::kFloat: return use(KindConstant<OutputKind::kFloat>());
  }
}

// One pixel's channels of the panel, `count` of them; Offsets in elements from the destination's first.
template <OutputKind kKind>
inline void StoreAvx2(const PanelConstants& constants, const Destination& to, int64_t offset, int64_t residual_offset,
                      int count, __m256i acc0, __m256i acc1) {
  if (kKind == OutputKind::kFloat) {
    float* out = static_cast<float*>(to.output) + offset;
    __m256 y[2] = {FloatsAvx2(constants, 0, acc0), FloatsAvx2(constants, 1, acc1)};
    if (constants.function != nullptr) {
      kernels::avx2::ActivateVectors<2>(*constants.function, constants.function_multiplier, y);
    }
    if (count >= kPanel) {
      _mm256_storeu_ps(out, y[0]);
      _mm256_storeu_ps(out + 8, y[1]);
    } else {
      float values[kPanel];
      _mm256_storeu_ps(values, y[0]);
      _mm256_storeu_ps(values + 8, y[1]);
      memcpy(out, values, count * sizeof(float));
    }
    return;
  }
  constexpr bool kActivated = kKind == OutputKind::kActivated || kKind == OutputKind::kActivatedWithResidual;
  constexpr bool kResidual = kKind == OutputKind::kCodesWithResidual || kKind == OutputKind::kActivatedWithResidual;
  uint8_t* out = static_cast<uint8_t*>(to.output) + offset;
  __m128i residual = _mm_setzero_si128();
  if (count >= kPanel) {
    if (kResidual) residual = _mm_loadu_si128(reinterpret_cast<const __m128i*>(to.residual + residual_offset));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     CodesAvx2<kResidual, kActivated>(constants, acc0, acc1, residual));
  } else {
    uint8_t values[kPanel] = {};
    if (kResidual) {
      memcpy(values, to.residual + residual_offset, count);
      residual = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(values),
                     CodesAvx2<kResidual, kActivated>(constants, acc0, acc1, residual));
    memcpy(out, values, count);
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_OUTPUT_AVX2_H_

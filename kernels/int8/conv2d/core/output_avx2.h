// Accumulators to outputs, a pixel's sixteen channels in two vectors: kernels/core/requantize.h in AVX2. Everything is
// local to the including source: see loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_AVX2_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_AVX2_H_

#include <string.h>

#include "kernels/core/activate_avx2.h"
#include "kernels/core/avx2.h"
#include "kernels/int8/conv2d/core/output_form.h"

namespace fuselage::int8::conv2d {
namespace {

// The constants of a panel, in registers or on the stack: stores of codes may alias what OutputStage points to.
struct PanelConstants {
  __m256i bias[2];
  __m256 multiplier[2], float_bias[2];
  __m256i residual_zero_point;
  __m256 residual_multiplier, negative_to_zero;
  __m128i residual_flip;
  kernels::avx2::OutputCodes codes;
  const ElementwiseInstruction* function;
  const float *function_multiplier, *function_offset;
};

inline PanelConstants PanelConstantsOf(const OutputStage& stage, int channel) {
  PanelConstants c;
  // Else GCC 12 copies halves of vectors, and a load of both waits until all stores before it are in the cache.
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    c.bias[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(stage.bias + channel + 8 * i));
    c.multiplier[i] = _mm256_loadu_ps(stage.multiplier + channel + 8 * i);
    c.float_bias[i] = stage.is_float ? _mm256_loadu_ps(stage.float_bias + channel + 8 * i) : _mm256_setzero_ps();
  }
  c.residual_zero_point = _mm256_set1_epi32(stage.residual_zero_point);
  c.residual_multiplier = _mm256_set1_ps(stage.residual_multiplier);
  c.negative_to_zero = _mm256_castsi256_ps(_mm256_set1_epi32(stage.relu ? -1 : 0));
  c.residual_flip = _mm_set1_epi8(static_cast<char>(stage.residual_flip));
  c.codes = kernels::avx2::MakeOutputCodes(stage.zero_point, stage.lo, stage.hi, stage.output_flip);
  c.function = stage.function;
  c.function_multiplier = stage.function_multiplier + channel;
  c.function_offset = stage.function_offset + channel;
  return c;
}

// The first `count` channels of a pixel; kWhole: they are known to be all sixteen.
template <bool kWhole>
inline __m128i LoadCodes(const uint8_t* from, int count) {
  if (kWhole || count >= kPanel) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return kernels::avx2::LoadFirst(from, count);
}
template <bool kWhole>
inline void StoreCodes(__m128i codes, int count, uint8_t* to) {
  if (kWhole || count >= kPanel) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), codes);
  } else {
    kernels::avx2::StoreFirst(codes, count, to);
  }
}

// A pixel before it is rounded, in v[0] and v[1]. `residual`: where its codes are.
template <typename Form, bool kWhole>
inline void PixelOf(const PanelConstants& c, __m256i sum0, __m256i sum1, const uint8_t* residual, int count,
                    __m256* v) {
  constexpr bool kPlain = Form::kind == OutputKind::kPlainCodes;
  v[0] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sum0, c.bias[0])), c.multiplier[0]);
  v[1] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sum1, c.bias[1])), c.multiplier[1]);
  if (!Form::residual) return;
  __m128i codes = LoadCodes<kWhole>(residual, count);
  if (!kPlain) codes = _mm_xor_si128(codes, c.residual_flip);
  for (int i = 0; i < 2; ++i, codes = _mm_srli_si128(codes, 8)) {
    __m256i r = _mm256_cvtepu8_epi32(codes);
    if (!kPlain) r = _mm256_sub_epi32(r, c.residual_zero_point);
    v[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(r), c.residual_multiplier, v[i]);
  }
}

// The codes of two pixels, one after the other. Not of a function's: see ActivateCodes.
template <typename Form>
inline __m256i CodesOf(const PanelConstants& c, __m256* v) {
  static_assert(Form::kind != OutputKind::kActivatedCodes, "activated together with others");
  if (Form::kind != OutputKind::kPlainCodes) return kernels::avx2::ToCodes(v[0], v[1], v[2], v[3], c.codes);
  const __m256i r01 = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
  const __m256i r23 = _mm256_packs_epi32(_mm256_cvtps_epi32(v[2]), _mm256_cvtps_epi32(v[3]));
  return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(r01, r23), c.codes.order);
}

// A function's loop has to be found and begun: that is for the values of some pixels at a time, [pixel][16] in memory.
constexpr int kActivatedPixels = 16;

inline void ActivatePixels(const PanelConstants& c, float* values, int count) {
  static_assert(kPanel % kernels::kActivatedTogether == 0, "pixels are whole tiles");
  kernels::avx2::Activate(*c.function, values, count * kPanel);
}

// The codes of `count` pixels of `values`: store(codes) of each. There is room for an even number of them.
template <typename Store>
inline void ActivateCodes(const PanelConstants& c, float* values, int count, Store store) {
  ActivatePixels(c, values, count);
  if (count % 2 != 0) memset(values + count * kPanel, 0, kPanel * sizeof(float));
  const kernels::avx2::OutputCodes to = c.codes;
  const __m256 scale0 = _mm256_loadu_ps(c.function_multiplier), scale1 = _mm256_loadu_ps(c.function_multiplier + 8);
  const __m256 shift0 = _mm256_loadu_ps(c.function_offset), shift1 = _mm256_loadu_ps(c.function_offset + 8);
  for (int pixel = 0; pixel < count; pixel += 2) {
    const float* from = values + pixel * kPanel;
    const __m256i codes = kernels::avx2::ToCodes(_mm256_fmadd_ps(_mm256_load_ps(from), scale0, shift0),
                                                 _mm256_fmadd_ps(_mm256_load_ps(from + 8), scale1, shift1),
                                                 _mm256_fmadd_ps(_mm256_load_ps(from + 16), scale0, shift0),
                                                 _mm256_fmadd_ps(_mm256_load_ps(from + 24), scale1, shift1), to);
    store(_mm256_castsi256_si128(codes));
    if (pixel + 1 < count) store(_mm256_extracti128_si256(codes, 1));
  }
}

inline __m256 FloatsOf(const PanelConstants& c, int i, __m256i sum) {
  const __m256 a = _mm256_cvtepi32_ps(_mm256_add_epi32(sum, c.bias[i]));
  const __m256 y = _mm256_fmadd_ps(a, c.multiplier[i], c.float_bias[i]);
  // As `y < 0 ? 0 : y` where there is a ReLU: -0 stays.
  const __m256 negative = _mm256_cmp_ps(y, _mm256_setzero_ps(), _CMP_LT_OQ);
  return _mm256_andnot_ps(_mm256_and_ps(negative, c.negative_to_zero), y);
}

// The first `count` channels of a pixel as floats; all sixteen where kWhole.
template <bool kWhole>
inline void StoreFloats(const PanelConstants& c, __m256i sum0, __m256i sum1, int count, float* to) {
  __m256 y[2] = {FloatsOf(c, 0, sum0), FloatsOf(c, 1, sum1)};
  if (c.function != nullptr) {
    kernels::avx2::ActivateVectors<2>(*c.function, y);
    for (int i = 0; i < 2; ++i) {
      y[i] = _mm256_fmadd_ps(y[i], _mm256_loadu_ps(c.function_multiplier + 8 * i),
                             _mm256_loadu_ps(c.function_offset + 8 * i));
    }
  }
  if (kWhole) {
    _mm256_storeu_ps(to, y[0]);
    _mm256_storeu_ps(to + 8, y[1]);
  } else {
    memcpy(to, y, count * sizeof(float));
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_OUTPUT_AVX2_H_

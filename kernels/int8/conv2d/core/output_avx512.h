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
  __m512 multiplier, float_bias, function_multiplier, function_offset;
};
struct StageConstants {
  __m512i residual_zero_point;
  __m512 residual_multiplier;
  __m128i residual_flip;
  core::OutputCodes codes;
  const ElementwiseInstruction* function;
  bool relu;
};

inline PanelConstants PanelConstantsOf(const OutputStage& stage, int channel) {
  return {_mm512_loadu_si512(stage.bias + channel), _mm512_loadu_ps(stage.multiplier + channel),
          stage.is_float ? _mm512_loadu_ps(stage.float_bias + channel) : _mm512_setzero_ps(),
          _mm512_loadu_ps(stage.function_multiplier + channel), _mm512_loadu_ps(stage.function_offset + channel)};
}

inline StageConstants StageConstantsOf(const OutputStage& stage) {
  return {_mm512_set1_epi32(stage.residual_zero_point),
          _mm512_set1_ps(stage.residual_multiplier),
          _mm_set1_epi8(static_cast<char>(stage.residual_flip)),
          core::MakeOutputCodes(stage.zero_point, stage.lo, stage.hi, stage.output_flip),
          stage.function,
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

// One pixel of one panel before it is rounded, from a sum that has its bias,
inline __m512 ScaledOf(const PanelConstants& panel, __m512i sum) {
  return _mm512_mul_ps(_mm512_cvtepi32_ps(sum), panel.multiplier);
}
// from one that has not,
inline __m512 ValuesOf(const PanelConstants& panel, __m512i sum) {
  return ScaledOf(panel, _mm512_add_epi32(sum, panel.bias));
}
// and with its residual.
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

// y of a function, scaled and shifted.
inline __m512 BehindFunction(const PanelConstants& panel, __m512 y) {
  return _mm512_fmadd_ps(y, panel.function_multiplier, panel.function_offset);
}

// The codes of four vectors of values, one after the other: v[i] is of panel i % kPanels.
template <typename Form, int kPanels>
inline __m512i CodesOf(const StageConstants& c, const PanelConstants* panels, __m512* v) {
  if (Form::kind == OutputKind::kActivatedCodes) {
    core::ActivateVectors<4>(*c.function, v);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) v[i] = BehindFunction(panels[i % kPanels], v[i]);
  }
  if (Form::kind != OutputKind::kPlainCodes) return core::ToCodes(v[0], v[1], v[2], v[3], c.codes);
  const __m512i r01 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[0]), _mm512_cvtps_epi32(v[1]));
  const __m512i r23 = _mm512_packs_epi32(_mm512_cvtps_epi32(v[2]), _mm512_cvtps_epi32(v[3]));
  return _mm512_permutexvar_epi32(c.codes.order, _mm512_packus_epi16(r01, r23));
}

// Part `index` of the codes, a pixel's. An extraction's index is a constant. Masked stores take longer.
template <int kPanels>
inline void StorePixel(__m512i codes, int index, uint64_t existing, uint8_t* to) {
  if (kPanels > 2) {
    if (existing == ~uint64_t{0}) return _mm512_storeu_si512(to, codes);
    return _mm512_mask_storeu_epi8(to, existing, codes);
  }
  const __m256i half =
      index < (kPanels == 2 ? 1 : 2) ? _mm512_castsi512_si256(codes) : _mm512_extracti64x4_epi64(codes, 1);
  if (kPanels == 2) {
    const __mmask32 mask = static_cast<__mmask32>(existing);
    if (mask == 0xffffffff) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), half);
    return _mm256_mask_storeu_epi8(to, mask, half);
  }
  const __m128i quarter = index % 2 == 0 ? _mm256_castsi256_si128(half) : _mm256_extracti128_si256(half, 1);
  const __mmask16 mask = static_cast<__mmask16>(existing);
  if (mask == 0xffff) return _mm_storeu_si128(reinterpret_cast<__m128i*>(to), quarter);
  _mm_mask_storeu_epi8(to, mask, quarter);
}

// Where the codes of a tile go: from a pixel and a channel of the destination on, whose channels are at most four
// panels.
class TileCodes {
 public:
  TileCodes(const OutputStage& stage, const StageConstants& constants, const Destination& to, int64_t pixel,
            int channel)
      : stage_(stage),
        constants_(constants),
        existing_(~uint64_t{0} >> (4 * kPanel - (to.channels - channel))),
        out_(static_cast<uint8_t*>(to.output) + pixel * to.pixel_stride + channel),
        residual_(to.residual == nullptr ? nullptr : to.residual + pixel * to.residual_pixel_stride + channel),
        pixel_stride_(to.pixel_stride),
        residual_stride_(to.residual_pixel_stride),
        channel_(to.channel + channel) {}

  // What the sums of a panel begin with.
  __m512i Bias(int panel) const { return _mm512_loadu_si512(stage_.bias + channel_ + panel * kPanel); }

  // sums: with the bias. A vector of codes is that of one pixel, or of four with one panel, two with two.
  template <int kRows, int kPanels>
  __attribute__((always_inline)) void Store(const __m512i (&sums)[kRows][kPanels]) const {
    constexpr int kTogether = 4 / kPanels;
    // Stores of codes may alias what members point to.
    const bool plain = stage_.plain;
    const uint64_t existing = existing_;
    uint8_t* const out = out_;
    const uint8_t* const residual = residual_;
    const int64_t pixel_stride = pixel_stride_, residual_stride = residual_stride_;
    __m512 multiplier[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) multiplier[p] = _mm512_loadu_ps(stage_.multiplier + channel_ + p * kPanel);
#pragma GCC unroll 16
    for (int first = 0; first < kRows; first += kTogether) {
      __m512 v[4] = {};
#pragma GCC unroll 4
      for (int i = 0; i < kTogether * kPanels; ++i) {
        const int row = first + i / kPanels, p = i % kPanels;
        if (row >= kRows) continue;
        v[i] = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[row][p]), multiplier[p]);
        if (residual == nullptr) continue;
        const __m128i codes = _mm_maskz_loadu_epi8(static_cast<__mmask16>(existing >> p * kPanel),
                                                   residual + row * residual_stride + p * kPanel);
        v[i] = AddResidual<OutputForm<OutputKind::kCodes, true>>(constants_, codes, v[i]);
      }
      const __m512i codes = plain ? CodesOf<OutputForm<OutputKind::kPlainCodes, false>, kPanels>(constants_, nullptr, v)
                                  : CodesOf<OutputForm<OutputKind::kCodes, false>, kPanels>(constants_, nullptr, v);
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
        if (first + i < kRows) StorePixel<kPanels>(codes, i, existing, out + (first + i) * pixel_stride);
      }
    }
  }

 private:
  const OutputStage& stage_;
  const StageConstants& constants_;
  const uint64_t existing_;  // Of the channels.
  uint8_t* const out_;
  const uint8_t* const residual_;
  const int64_t pixel_stride_, residual_stride_;
  const int channel_;
};

inline __m512 FloatsOf(const PanelConstants& panel, __m512i sum) {
  const __m512 a = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, panel.bias));
  return _mm512_fmadd_ps(a, panel.multiplier, panel.float_bias);
}

// The first `count` channels of a pixel as floats; all sixteen where kWhole.
template <bool kWhole>
inline void StoreFloats(const StageConstants& c, const PanelConstants& panel, __m512i sum, int count, void* to) {
  __m512 y = FloatsOf(panel, sum);
  if (c.function != nullptr) {
    core::ActivateVectors<1>(*c.function, &y);
    y = BehindFunction(panel, y);
  }
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

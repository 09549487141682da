// AVX2's direct convolution.
#include "kernels/core/avx2.h"
#include "kernels/core/multiply/multiply_pairs_avx2.h"
#include "kernels/int8/conv2d/core/load_bytes.h"
#include "kernels/int8/conv2d/core/multiply_avx2.h"
#include "kernels/int8/conv2d/core/output_avx2.h"
#include "kernels/int8/conv2d/direct/few_avx2.h"

namespace fuselage::int8::conv2d::direct::avx2 {
namespace {

void Load(const uint8_t* x, int64_t count, uint8_t flip, void* out) {
  int16_t* to = static_cast<int16_t*>(out);
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i codes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i)), flips);
    StoreVector(to + i, _mm256_cvtepi8_epi16(codes));
  }
  for (; i < count; ++i) to[i] = static_cast<int8_t>(x[i] ^ flip);
}

// kWhole: all the panel's channels exist.
template <bool kWhole>
void FinishFloats(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  float* out = static_cast<float*>(to.output);
  for (int pixel = 0; pixel < pixels; ++pixel, c += c_stride, out += to.pixel_stride) {
    StoreFloats<kWhole>(constants, LoadVector(c), LoadVector(c + 8), to.channels, out);
  }
}

// Two pixels at a time: their codes are one vector.
template <typename Form, bool kWhole>
void FinishCodes(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const int channels = to.channels;
  const int64_t stride = to.pixel_stride, residual_stride = to.residual_pixel_stride;
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* residual = to.residual;
  for (; pixels > 0; pixels -= 2) {
    // A pixel that does not exist repeats the last.
    const int32_t* next = pixels > 1 ? c + c_stride : c;
    const uint8_t* next_residual = pixels > 1 ? residual + residual_stride : residual;
    __m256 v[4];
    PixelOf<Form, kWhole>(constants, LoadVector(c), LoadVector(c + 8), residual, channels, v);
    PixelOf<Form, kWhole>(constants, LoadVector(next), LoadVector(next + 8), next_residual, channels, v + 2);
    const __m256i codes = CodesOf<Form>(constants, v);
    StoreCodes<kWhole>(_mm256_castsi256_si128(codes), channels, out);
    if (pixels > 1) StoreCodes<kWhole>(_mm256_extracti128_si256(codes, 1), channels, out + stride);
    c += 2 * c_stride;
    out += 2 * stride;
    if (Form::residual) residual += 2 * residual_stride;
  }
}

template <typename Form>
void FinishActivated(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  constexpr bool kFloat = Form::kind == OutputKind::kFloat;
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const int channels = to.channels;
  const int64_t stride = to.pixel_stride * (kFloat ? sizeof(float) : 1), residual_stride = to.residual_pixel_stride;
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* residual = to.residual;
  alignas(32) float values[kActivatedPixels * kPanel];
  for (int count; pixels > 0; pixels -= count) {
    count = pixels < kActivatedPixels ? pixels : kActivatedPixels;
    for (int pixel = 0; pixel < count; ++pixel, c += c_stride) {
      __m256 v[2];
      if constexpr (kFloat) {
        v[0] = FloatsOf(constants, 0, LoadVector(c));
        v[1] = FloatsOf(constants, 1, LoadVector(c + 8));
      } else {
        PixelOf<Form, /*kWhole=*/false>(constants, LoadVector(c), LoadVector(c + 8), residual, channels, v);
      }
      _mm256_store_ps(values + pixel * kPanel, v[0]);
      _mm256_store_ps(values + pixel * kPanel + 8, v[1]);
      if (Form::residual) residual += residual_stride;
    }
    if constexpr (kFloat) {
      ActivatePixels(constants, values, count);
      for (int i = 0; i < count * kPanel; i += 8) {
        const __m256 y = _mm256_load_ps(values + i),
                     scale = _mm256_loadu_ps(constants.function_multiplier + i % kPanel);
        _mm256_store_ps(values + i, _mm256_fmadd_ps(y, scale, _mm256_loadu_ps(constants.function_offset + i % kPanel)));
      }
      for (int pixel = 0; pixel < count; ++pixel, out += stride) {
        memcpy(out, values + pixel * kPanel, (channels < kPanel ? channels : kPanel) * sizeof(float));
      }
    } else {
      ActivateCodes(constants, values, count, [&](__m128i codes) {
        StoreCodes</*kWhole=*/false>(codes, channels, out);
        out += stride;
      });
    }
  }
}

void FinishPanels(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  WithOutputForm(stage, [&](auto form) {
    using Form = decltype(form);
    const bool whole = to.channels >= kPanel;
    FinishPixels* finish;
    if constexpr (Form::kind == OutputKind::kActivatedCodes) {
      finish = FinishActivated<Form>;
    } else if constexpr (Form::kind == OutputKind::kFloat) {
      finish = whole ? FinishFloats<true> : FinishFloats<false>;
      if (stage.function != nullptr) finish = FinishActivated<Form>;
    } else {
      finish = whole ? FinishCodes<Form, true> : FinishCodes<Form, false>;
    }
    finish(stage, to, c, c_stride, pixels);
  });
}

void Finish(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t c_stride, int pixels) {
  // Vectors of a pixel each would be mostly empty.
  const bool few = to.channels <= kMostFewChannels && (stage.is_float || stage.function != nullptr);
  (few ? FinishFew<FinishPanels> : FinishPanels)(stage, to, c, c_stride, pixels);
}

}  // namespace

Loops GetLoops() {
  return {/*lanes=*/8,
          /*element_bytes=*/2,
          /*scattered_tiles=*/0,
          /*max_rows=*/8 * kMaxRows,
          /*max_panels=*/1,
          /*chunk_depth=*/512,
          /*load=*/Load,
          /*multiply=*/MultiplyTiles<WordProduct>,
          /*multiply_few=*/nullptr,
          /*finish=*/Finish,
          /*group=*/nullptr,
          /*multiply_codes=*/nullptr};
}

Loops GetFewLoops() {
  Loops loops = GetLoops();
  loops.chunk_depth = 1 << 30;
  loops.multiply_few = MultiplyFew<FewLanes<WordProduct>>;
  loops.finish = FinishFew<FinishPanels>;
  return loops;
}

Loops GetPairLoops() {
  Loops loops = GetLoops();
  loops.element_bytes = 1;
  loops.load = LoadBytes;
  loops.multiply = kernels::MultiplyPairs<true>;
  loops.group = kernels::GroupPairs;
  return loops;
}

}  // namespace fuselage::int8::conv2d::direct::avx2

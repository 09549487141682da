// Winograd in AVX2: 16 input channels, or 8 outputs, in a vector.
#include "kernels/int8/conv2d/core/output_avx2.h"
#include "kernels/int8/conv2d/direct/loops.h"
#include "kernels/int8/conv2d/winograd/loops.h"
#include "kernels/int8/conv2d/winograd/transforms.h"
#include "kernels/int8/conv2d/winograd/ymm.h"

namespace fuselage::int8::conv2d::winograd::avx2 {
namespace {

// kWhole: all the panel's channels exist.
template <typename Form, bool kWhole>
void StoreTile(const OutputStage& stage, const Destination& to, const int32_t* sums, int rows, int columns) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  const auto low = [&](int r, int s) { return Ymm::Load(sums + (4 * r + s) * kPanel); };
  const auto high = [&](int r, int s) { return Ymm::Load(sums + (4 * r + s) * kPanel + kPanel / 2); };
  for (int r = 0; r < rows; ++r) {
    if constexpr (Form::kind == OutputKind::kFloat) {
      float* out = static_cast<float*>(place.output) + r * place.row_stride;
      for (int s = 0; s < columns; ++s) {
        StoreFloats<kWhole>(constants, low(r, s), high(r, s), place.channels, out + s * place.pixel_stride);
      }
    } else {
      uint8_t* out = static_cast<uint8_t*>(place.output) + r * place.row_stride;
      for (int s = 0; s < columns; s += 2) {
        __m256 v[4];
        for (int i = 0; i < 2; ++i) {
          // A column that does not exist repeats the first.
          const int64_t at = s + i < columns ? (s + i) * place.residual_pixel_stride : 0;
          const uint8_t* residual = Form::residual ? place.residual + r * place.residual_row_stride + at : nullptr;
          PixelOf<Form, kWhole>(constants, low(r, s + i), high(r, s + i), residual, place.channels, v + 2 * i);
        }
        const __m256i codes = CodesOf<Form>(constants, v);
        StoreCodes<kWhole>(_mm256_castsi256_si128(codes), place.channels, out + s * place.pixel_stride);
        if (s + 1 == columns) continue;
        StoreCodes<kWhole>(_mm256_extracti128_si256(codes, 1), place.channels, out + (s + 1) * place.pixel_stride);
      }
    }
  }
}

template <typename Form>
void StoreActivated(const OutputStage& stage, const Destination& to, const int32_t* sums, int rows, int columns) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  alignas(32) float values[kActivatedPixels * kPanel];
  const int count = rows * columns;
  float* value = values;
  for (int r = 0; r < rows; ++r) {
    for (int s = 0; s < columns; ++s, value += kPanel) {
      const int64_t at = r * place.residual_row_stride + s * place.residual_pixel_stride;
      const int32_t* const sum = sums + (4 * r + s) * kPanel;
      __m256 v[2];
      PixelOf<Form, /*kWhole=*/false>(constants, Ymm::Load(sum), Ymm::Load(sum + kPanel / 2),
                                      Form::residual ? place.residual + at : nullptr, place.channels, v);
      _mm256_store_ps(value, v[0]);
      _mm256_store_ps(value + 8, v[1]);
    }
  }
  int r = 0, s = 0;
  ActivateCodes(constants, values, count, [&](__m128i codes) {
    StoreCodes</*kWhole=*/false>(codes, place.channels,
                                 static_cast<uint8_t*>(place.output) + r * place.row_stride + s * place.pixel_stride);
    if (++s == columns) s = 0, ++r;
  });
}

void Store(const OutputStage& stage, const Destination& to, const int32_t* sums, int rows, int columns) {
  WithOutputForm(stage, [&](auto form) {
    using Form = decltype(form);
    if constexpr (Form::kind == OutputKind::kActivatedCodes) {
      StoreActivated<Form>(stage, to, sums, rows, columns);
    } else {
      (to.channels >= kPanel ? StoreTile<Form, true> : StoreTile<Form, false>)(stage, to, sums, rows, columns);
    }
  });
}

}  // namespace

Loops GetLoops() {
  const direct::Loops words = direct::avx2::GetLoops();
  return {/*max_rows=*/words.max_rows,
          /*max_panels=*/1,
          /*max_weight_bytes=*/512 << 10,
          /*word_product=*/1,
          /*input_transform=*/250,
          /*output_transform=*/560,
          /*weight_transform=*/60,
          /*transform_input=*/TransformInput<Ymm>,
          /*transform_weight=*/TransformWeight<Ymm>,
          /*multiply=*/words.multiply,
          /*transform_output=*/TransformOutput<Ymm>,
          /*store=*/Store};
}

}  // namespace fuselage::int8::conv2d::winograd::avx2

// Winograd in AVX2: 16 input channels, or 8 outputs, in a vector.
#include "kernels/int8/conv2d/core/multiply_avx2.h"
#include "kernels/int8/conv2d/core/output_avx2.h"
#include "kernels/int8/conv2d/winograd/loops.h"
#include "kernels/int8/conv2d/winograd/transforms.h"

namespace fuselage::int8::conv2d::winograd::avx2 {
namespace {

struct Avx2 {
  using Vector = __m256i;
  static inline Vector Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static inline void Store(void* p, Vector v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  static inline Vector LoadCodes(const void* p, uint8_t flip) {
    const __m128i codes = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_cvtepi8_epi16(_mm_xor_si128(codes, _mm_set1_epi8(static_cast<char>(flip))));
  }
  static inline Vector Add16(Vector a, Vector b) { return _mm256_add_epi16(a, b); }
  static inline Vector Sub16(Vector a, Vector b) { return _mm256_sub_epi16(a, b); }
  template <int n>
  static inline Vector Shift16(Vector a) {
    return _mm256_slli_epi16(a, n);
  }
  static inline Vector Add32(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static inline Vector Sub32(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  template <int n>
  static inline Vector Shift32(Vector a) {
    return _mm256_slli_epi32(a, n);
  }
  static inline Vector Multiply32(Vector a, int b) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(b)); }
  static inline Vector ShiftRight32(Vector a, int n) { return _mm256_srai_epi32(a, n); }
};

// kWhole: all the panel's channels exist.
template <typename Form, bool kWhole>
void StoreTile(const OutputStage& stage, const Destination& to, const int32_t* sums, int rows, int columns) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  const auto low = [&](int r, int s) { return Avx2::Load(sums + (4 * r + s) * kPanel); };
  const auto high = [&](int r, int s) { return Avx2::Load(sums + (4 * r + s) * kPanel + kPanel / 2); };
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

void Store(const OutputStage& stage, const Destination& to, const int32_t* sums, int rows, int columns) {
  WithOutputForm(stage, [&](auto form) {
    const auto store = to.channels >= kPanel ? StoreTile<decltype(form), true> : StoreTile<decltype(form), false>;
    store(stage, to, sums, rows, columns);
  });
}

}  // namespace

Loops GetLoops() {
  return {/*max_rows=*/kMaxRows,
          /*max_panels=*/1,
          /*max_weight_bytes=*/512 << 10,
          /*word_product=*/1,
          /*input_transform=*/250,
          /*output_transform=*/560,
          /*weight_transform=*/60,
          /*transform_input=*/TransformInput<Avx2>,
          /*transform_weight=*/TransformWeight<Avx2>,
          /*multiply=*/MultiplyRows<WordProduct>,
          /*transform_output=*/TransformOutput<Avx2>,
          /*store=*/Store};
}

}  // namespace fuselage::int8::conv2d::winograd::avx2

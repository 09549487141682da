// Winograd in AVX-512: 32 input channels, or 16 outputs, in a vector; vpdpwssd adds two products of int16 to each int32
// lane, which wraps. It multiplies half as many pairs a cycle as vpdpbusd, but Winograd has a quarter of them.
#include <string.h>

#include "kernels/core/avx512.h"
#include "kernels/core/multiply/multiply_avx512.h"
#include "kernels/int8/conv2d/core/output_avx512.h"
#include "kernels/int8/conv2d/winograd/loops.h"
#include "kernels/int8/conv2d/winograd/transforms.h"
#include "kernels/int8/conv2d/winograd/ymm.h"

namespace fuselage::int8::conv2d::winograd::FUSELAGE_AVX512_VNNI {
namespace {

struct Avx512 {
  using Vector = __m512i;
  static inline Vector Load(const void* p) { return _mm512_loadu_si512(p); }
  static inline void Store(void* p, Vector v) { _mm512_storeu_si512(p, v); }
  static inline Vector LoadCodes(const void* p, uint8_t flip) {
    const __m256i codes = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_cvtepi8_epi16(_mm256_xor_si256(codes, _mm256_set1_epi8(static_cast<char>(flip))));
  }
  static inline Vector Add16(Vector a, Vector b) { return _mm512_add_epi16(a, b); }
  static inline Vector Sub16(Vector a, Vector b) { return _mm512_sub_epi16(a, b); }
  template <int n>
  static inline Vector Shift16(Vector a) {
    return _mm512_slli_epi16(a, n);
  }
  static inline Vector Add32(Vector a, Vector b) { return _mm512_add_epi32(a, b); }
  static inline Vector Sub32(Vector a, Vector b) { return _mm512_sub_epi32(a, b); }
  template <int n>
  static inline Vector Shift32(Vector a) {
    return _mm512_slli_epi32(a, n);
  }
  static inline Vector Multiply32(Vector a, int b) { return _mm512_mullo_epi32(a, _mm512_set1_epi32(b)); }
  static inline Vector ShiftRight32(Vector a, int n) { return _mm512_srai_epi32(a, n); }
};

// Two products of int16.
struct Product {
  static inline __m512i Add(__m512i sum, __m512i x, __m512i weights) { return _mm512_dpwssd_epi32(sum, x, weights); }
};

// Six tiles by four panels: ten loads for 24 products.
void MultiplyTiles(const Multiply& m) {
  return kernels::MultiplyPanels<Product>(m);
}

// kWhole: all the panel's channels exist.
template <typename Form, bool kWhole>
void StoreTile(const OutputStage& stage, const Destination& to, const int32_t* sums, int rows, int columns) {
  const StageConstants constants = StageConstantsOf(stage);
  const PanelConstants panel = PanelConstantsOf(stage, to.channel);
  const auto sum = [&](int r, int s) { return Avx512::Load(sums + (4 * r + s) * kPanel); };
  const int64_t pixel_stride = to.pixel_stride, row_stride = to.row_stride;
  const int64_t residual_pixel_stride = to.residual_pixel_stride, residual_row_stride = to.residual_row_stride;
  const int channels = kWhole ? kPanel : to.channels;
  const uint8_t* residual = to.residual;
  for (int r = 0; r < rows; ++r) {
    if constexpr (Form::kind == OutputKind::kFloat) {
      float* out = static_cast<float*>(to.output) + r * row_stride;
      for (int s = 0; s < columns; ++s) {
        StoreFloats<kWhole>(constants, panel, sum(r, s), channels, out + s * pixel_stride);
      }
    } else {
      __m512 v[4];
#pragma GCC unroll 4
      for (int s = 0; s < 4; ++s) {
        v[s] = ValuesOf(panel, sum(r, s));
        if (!Form::residual) continue;
        // A column that does not exist repeats the first.
        const int64_t at = s < columns ? s * residual_pixel_stride : 0;
        v[s] = AddResidual<Form>(constants, LoadCodes<kWhole>(residual + at, channels), v[s]);
      }
      const __m512i codes = CodesOf<Form, 1>(constants, &panel, v);
      const __m128i pixels[4] = {_mm512_castsi512_si128(codes), _mm512_extracti32x4_epi32(codes, 1),
                                 _mm512_extracti32x4_epi32(codes, 2), _mm512_extracti32x4_epi32(codes, 3)};
      uint8_t* out = static_cast<uint8_t*>(to.output) + r * row_stride;
      for (int s = 0; s < columns; ++s) memcpy(out + s * pixel_stride, &pixels[s], channels);
      if (Form::residual) residual += residual_row_stride;
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

// weight_transform: Zen 4 takes 180 to 230; twice that, for processors whose products are faster beside their caches.
Loops GetLoops() {
  return {/*max_rows=*/kMaxRows,
          /*max_panels=*/4,
          /*max_weight_bytes=*/1280 << 10,
          /*word_product=*/2,
          /*input_transform=*/450,
          /*output_transform=*/1600,
          /*weight_transform=*/480,
          /*transform_input=*/TransformInput<Avx512, Ymm>,
          /*transform_weight=*/TransformWeight<Avx512>,
          /*multiply=*/MultiplyTiles,
          /*transform_output=*/TransformOutput<Avx512>,
          /*store=*/Store};
}

}  // namespace fuselage::int8::conv2d::winograd::FUSELAGE_AVX512_VNNI

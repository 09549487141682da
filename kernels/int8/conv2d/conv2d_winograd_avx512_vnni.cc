// Winograd in AVX-512: 32 input channels, or 16 outputs, in a vector; vpdpwssd adds two products of int16 to each int32
// lane, which wraps. It multiplies half as many pairs a cycle as vpdpbusd, but Winograd has a quarter of them.
//
// Tests build this source a second time with FUSELAGE_EMULATE_AVX512: portable forms of the AVX-512 intrinsics.
#include <string.h>

#include "kernels/int8/conv2d/multiply_avx512.h"
#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/output_avx512.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"
#include "kernels/int8/conv2d/winograd_transforms.h"

namespace fuselage::int8::conv2d {
namespace {

struct Avx512 {
  using Vector = __m512i;
  static inline Vector Load(const void* p) { return _mm512_loadu_si512(p); }
  static inline void Store(void* p, Vector v) { _mm512_storeu_si512(p, v); }
  // 32 int8, as int16.
  static inline Vector Widened(__m256i x) { return _mm512_cvtepi8_epi16(x); }
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

inline __m256i LoadHalf(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

void TransformInput(const uint8_t* const pixels[36], int channels, uint8_t flip, int16_t* v, int64_t position_stride) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(flip));
  int channel = 0;
  for (; channel + 32 <= channels; channel += 32) {
    InputTile<Avx512>(
        [&](int i, int j) { return Avx512::Widened(_mm256_xor_si256(LoadHalf(pixels[6 * i + j] + channel), flips)); },
        [&](int i, int j, __m512i out) { Avx512::Store(v + (6 * i + j) * position_stride + channel, out); });
  }
  if (channel == channels) return;
  // The last channels, followed by zeros: nothing is read past the tensor's end, nor written past `v`'s.
  const size_t left = channels - channel, bytes = left <= 16 ? 32 : 64;
  uint8_t copy[36][32];
  memset(copy, 0, sizeof(copy));
  for (int p = 0; p < 36; ++p) memcpy(copy[p], pixels[p] + channel, left);
  InputTile<Avx512>([&](int i, int j) { return Avx512::Widened(_mm256_xor_si256(LoadHalf(copy[6 * i + j]), flips)); },
                    [&](int i, int j, __m512i out) {
                      int16_t values[32];
                      Avx512::Store(values, out);
                      memcpy(v + (6 * i + j) * position_stride + channel, values, bytes);
                    });
}

template <int kRowPair>
void TransformWeightRows(const int8_t* g, int64_t depth, char* first, char* second, int64_t position_stride) {
  for (int64_t k = 0; k < depth; ++k) {
    WeightRows<Avx512, kRowPair>(
        [&](int ky, int kx) { return Avx512::Widened(LoadHalf(g + (3 * ky + kx) * 2 * kPanel)); },
        [&](int row, int j, __m512i out) { Avx512::Store((row == 0 ? first : second) + j * position_stride, out); });
    g += 9 * 2 * kPanel;
    first += kPanelBytes;
    second += kPanelBytes;
  }
}

void TransformWeight(const int8_t* g, int64_t depth, int row_pair, void* first, void* second, int64_t position_stride) {
  char* to = static_cast<char*>(first);
  char* other = static_cast<char*>(second);
  switch (row_pair) {
    case 0: return TransformWeightRows<0>(g, depth, to, other, position_stride);
    case 1: return TransformWeightRows<1>(g, depth, to, other, position_stride);
    default: return TransformWeightRows<2>(g, depth, to, other, position_stride);
  }
}

// Two products of int16.
struct Product {
  static inline __m512i Add(__m512i sum, __m512i x, __m512i weights) { return _mm512_dpwssd_epi32(sum, x, weights); }
};

// Six tiles by two panels: vpdpwssd takes five cycles, and two begin in each.
void MultiplyTiles(const Multiply& m) {
  return m.panels == 1 ? MultiplyRows<Product, 1>(m) : MultiplyRows<Product, 2>(m);
}

// A whole panel.
template <bool kResidual, bool kActivated>
void StoreWholeTile(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t position_stride,
                    int rows, int columns) {
  const WideConstants constants = WideConstantsOf(stage);
  const WidePanel panel = WidePanelOf(stage, to.channel);
  __m512i sums[16];
  OutputTile<Avx512>(c, position_stride, sums);
  const int64_t pixel_stride = to.pixel_stride, row_stride = to.row_stride;
  const int64_t residual_pixel_stride = to.residual_pixel_stride, residual_row_stride = to.residual_row_stride;
  uint8_t* out = static_cast<uint8_t*>(to.output);
  const uint8_t* residual = to.residual;
  for (int r = 0; r < rows; ++r) {
    __m512 v[4];
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) {
      // A column that does not exist repeats the first.
      const int64_t at = s < columns ? s * residual_pixel_stride : 0;
      v[s] = WideValues<kResidual>(constants, panel, sums[4 * r + s], residual + at);
    }
    const __m512i codes = WideCodes<kActivated>(constants, v);
    const __m128i pixels[4] = {_mm512_castsi512_si128(codes), _mm512_extracti32x4_epi32(codes, 1),
                               _mm512_extracti32x4_epi32(codes, 2), _mm512_extracti32x4_epi32(codes, 3)};
    for (int s = 0; s < columns; ++s) _mm_storeu_si128(reinterpret_cast<__m128i*>(out + s * pixel_stride), pixels[s]);
    out += row_stride;
    if (kResidual) residual += residual_row_stride;
  }
}

template <OutputKind kKind>
void StoreTile(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t position_stride, int rows,
               int columns) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  __m512i sums[16];
  OutputTile<Avx512>(c, position_stride, sums);
  for (int r = 0; r < rows; ++r) {
    for (int s = 0; s < columns; ++s) {
      const __m512i sum = sums[4 * r + s];
      StoreAvx2<kKind>(constants, place, r * place.row_stride + s * place.pixel_stride,
                       r * place.residual_row_stride + s * place.residual_pixel_stride, place.channels,
                       _mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
    }
  }
}

void TransformOutput(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t position_stride,
                     int rows, int columns) {
  if (!stage.is_float && to.channels >= kPanel) {
    return WithCodesKind(stage, [&](auto residual, auto activated) {
      StoreWholeTile<residual.value, activated.value>(stage, to, c, position_stride, rows, columns);
    });
  }
  WithOutputKind(stage, [&](auto kind) { StoreTile<kind.value>(stage, to, c, position_stride, rows, columns); });
}

// More than half of a second-level cache of 2 MB. With 16 tiles (14x14, batch 1) the direct product is 1.4 times as
// fast as with late transforms, with 64 (7x7, batch 16) it is 0.8 times.
constexpr WinogradPrimitives kWinograd = {
    /*max_rows=*/kMaxRows,
    /*max_panels=*/2,
    /*max_weight_bytes=*/1280 << 10,
    /*least_tiles_late=*/64,
    /*transform_input=*/TransformInput,
    /*transform_weight=*/TransformWeight,
    /*multiply=*/MultiplyTiles,
    /*transform_output=*/TransformOutput};

}  // namespace

#ifdef FUSELAGE_EMULATE_AVX512
const WinogradPrimitives& WinogradAvx512VnniEmulated() { return kWinograd; }
#else
const WinogradPrimitives& WinogradAvx512Vnni() { return kWinograd; }
#endif

}  // namespace fuselage::int8::conv2d

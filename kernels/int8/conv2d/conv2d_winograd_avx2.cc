// Winograd in AVX2: 16 input channels, or 8 outputs, in a vector.
#include <string.h>

#include "kernels/int8/conv2d/multiply_avx2.h"
#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"
#include "kernels/int8/conv2d/winograd_transforms.h"

namespace fuselage::int8::conv2d {
namespace {

struct Avx2 {
  using Vector = __m256i;
  static inline Vector Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static inline void Store(void* p, Vector v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  // 16 int8, as int16.
  static inline Vector Widened(__m128i x) { return _mm256_cvtepi8_epi16(x); }
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

inline __m128i LoadHalf(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

inline void TransformChannels(const uint8_t* const pixels[36], int64_t channel, __m128i flip, int16_t* v,
                              int64_t position_stride) {
  InputTile<Avx2>(
      [&](int i, int j) { return Avx2::Widened(_mm_xor_si128(LoadHalf(pixels[6 * i + j] + channel), flip)); },
      [&](int i, int j, __m256i out) { Avx2::Store(v + (6 * i + j) * position_stride, out); });
}

void TransformInput(const uint8_t* const pixels[36], int channels, uint8_t flip, int16_t* v, int64_t position_stride) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  int channel = 0;
  for (; channel + 16 <= channels; channel += 16) {
    TransformChannels(pixels, channel, flips, v + channel, position_stride);
  }
  if (channel == channels) return;
  // The last channels, followed by zeros: nothing is read past the tensor's end.
  uint8_t copy[36][16];
  const uint8_t* copies[36];
  memset(copy, 0, sizeof(copy));
  for (int p = 0; p < 36; ++p) {
    memcpy(copy[p], pixels[p] + channel, channels - channel);
    copies[p] = copy[p];
  }
  TransformChannels(copies, 0, flips, v + channel, position_stride);
}

template <int kRowPair>
void TransformWeightRows(const int8_t* g, int64_t depth, char* first, char* second, int64_t position_stride) {
  for (int64_t k = 0; k < 2 * depth; ++k) {  // 8 output channels by 2 input channels each.
    WeightRows<Avx2, kRowPair>(
        [&](int ky, int kx) { return Avx2::Widened(LoadHalf(g + (3 * ky + kx) * 2 * kPanel)); },
        [&](int row, int j, __m256i out) { Avx2::Store((row == 0 ? first : second) + j * position_stride, out); });
    g += k % 2 == 0 ? kPanel : (9 * 2 - 1) * kPanel;
    first += kPanelBytes / 2;
    second += kPanelBytes / 2;
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

template <OutputKind kKind>
void StoreTile(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t position_stride, int rows,
               int columns) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  __m256i sums[2][16];
  OutputTile<Avx2>(c, position_stride, sums[0]);
  OutputTile<Avx2>(c + 8, position_stride, sums[1]);
  for (int r = 0; r < rows; ++r) {
    for (int s = 0; s < columns; ++s) {
      StoreAvx2<kKind>(constants, place, r * place.row_stride + s * place.pixel_stride,
                       r * place.residual_row_stride + s * place.residual_pixel_stride, place.channels,
                       sums[0][4 * r + s], sums[1][4 * r + s]);
    }
  }
}

void TransformOutput(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t position_stride,
                     int rows, int columns) {
  WithOutputKind(stage, [&](auto kind) { StoreTile<kind.value>(stage, to, c, position_stride, rows, columns); });
}

constexpr WinogradPrimitives kWinograd = {
    /*max_rows=*/kMaxRows,
    /*max_panels=*/1,
    /*max_weight_bytes=*/512 << 10,
    /*least_tiles_late=*/0,
    /*transform_input=*/TransformInput,
    /*transform_weight=*/TransformWeight,
    /*multiply=*/MultiplyRows<WordProduct>,
    /*transform_output=*/TransformOutput};

}  // namespace

const WinogradPrimitives& WinogradAvx2() { return kWinograd; }

}  // namespace fuselage::int8::conv2d

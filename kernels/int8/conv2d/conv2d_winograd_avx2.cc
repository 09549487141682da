// The transforms of conv2d_winograd.cc, which has the matrices and the proof, in AVX2. Input and weights in int16
// lanes, outputs in int32 lanes, each along columns first and then along rows.
#include <string.h>

#include "kernels/int8/conv2d/multiply_avx2.h"
#include "kernels/int8/conv2d/output_avx2.h"
#include "kernels/int8/conv2d/primitives.h"
#include "kernels/int8/conv2d/simd.h"

namespace fuselage::int8::conv2d {
namespace {

inline __m256i LoadVector(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline void StoreVector(void* p, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
inline __m128i LoadHalf(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m256i Add16(__m256i a, __m256i b) { return _mm256_add_epi16(a, b); }
inline __m256i Sub16(__m256i a, __m256i b) { return _mm256_sub_epi16(a, b); }
inline __m256i Add32(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
inline __m256i Sub32(__m256i a, __m256i b) { return _mm256_sub_epi32(a, b); }

// out = B'^T d
inline void InputColumn(const __m256i d[6], __m256i out[6]) {
  const __m256i e = Sub16(_mm256_slli_epi16(d[2], 2), d[4]);
  const __m256i f = Sub16(_mm256_slli_epi16(d[1], 2), d[3]);
  const __m256i g = Sub16(d[4], d[2]);
  const __m256i h = _mm256_slli_epi16(Sub16(d[3], d[1]), 1);
  out[0] = Add16(_mm256_slli_epi16(Sub16(d[0], d[2]), 2), g);
  out[1] = Add16(e, f);
  out[2] = Sub16(e, f);
  out[3] = Add16(g, h);
  out[4] = Sub16(g, h);
  out[5] = Sub16(Sub16(d[5], d[3]), Add16(h, h));
}

inline void InputTile(const uint8_t* const pixels[36], int64_t channel, __m128i flip, int16_t* v,
                      int64_t position_stride) {
  __m256i half[6][6];  // [i][j]: along j done.
  for (int i = 0; i < 6; ++i) {
    __m256i d[6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      d[j] = _mm256_cvtepi8_epi16(_mm_xor_si128(LoadHalf(pixels[6 * i + j] + channel), flip));
    }
    InputColumn(d, half[i]);
  }
  for (int j = 0; j < 6; ++j) {
    const __m256i d[6] = {half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]};
    __m256i out[6];
    InputColumn(d, out);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) StoreVector(v + (6 * i + j) * position_stride, out[i]);
  }
}

void TransformInput(const uint8_t* const pixels[36], int channels, uint8_t flip, int16_t* v, int64_t position_stride) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  int channel = 0;
  for (; channel + 16 <= channels; channel += 16) InputTile(pixels, channel, flips, v + channel, position_stride);
  if (channel == channels) return;
  // The last channels, followed by zeros: nothing is read past the tensor's end.
  uint8_t copy[36][16];
  const uint8_t* copies[36];
  memset(copy, 0, sizeof(copy));
  for (int p = 0; p < 36; ++p) {
    memcpy(copy[p], pixels[p] + channel, channels - channel);
    copies[p] = copy[p];
  }
  InputTile(copies, 0, flips, v + channel, position_stride);
}

// out = H g
inline void WeightColumn(__m256i g0, __m256i g1, __m256i g2, __m256i out[6]) {
  const __m256i six = _mm256_set1_epi16(6);
  const __m256i s = Add16(g0, g2);
  const __m256i q = Add16(g0, _mm256_slli_epi16(g2, 2));
  const __m256i e = Add16(g1, g1);
  out[0] = _mm256_mullo_epi16(g0, six);
  out[1] = Add16(s, g1);
  out[2] = Sub16(s, g1);
  out[3] = Add16(q, e);
  out[4] = Sub16(q, e);
  out[5] = _mm256_mullo_epi16(g2, six);
}

inline void StoreWeightRow(const __m256i row[3], char* to, int64_t position_stride) {
  __m256i out[6];
  WeightColumn(row[0], row[1], row[2], out);
#pragma GCC unroll 6
  for (int j = 0; j < 6; ++j) StoreVector(to + j * position_stride, out[j]);
}

inline __m256i LoadTap(const int8_t* g, int ky, int kx) {
  return _mm256_cvtepi8_epi16(LoadHalf(g + (3 * ky + kx) * 2 * kPanel));
}

template <int kRowPair>
void TransformWeightRows(const int8_t* g, int64_t depth, char* first, char* second, int64_t position_stride) {
  const __m256i six = _mm256_set1_epi16(6);
  for (int64_t k = 0; k < 2 * depth; ++k) {  // 8 output channels by 2 input channels each.
    __m256i row[3], other[3];
#pragma GCC unroll 3
    for (int kx = 0; kx < 3; ++kx) {
      if (kRowPair == 0) {
        row[kx] = _mm256_mullo_epi16(LoadTap(g, 0, kx), six);
        other[kx] = _mm256_mullo_epi16(LoadTap(g, 2, kx), six);
      } else if (kRowPair == 1) {
        const __m256i s = Add16(LoadTap(g, 0, kx), LoadTap(g, 2, kx)), g1 = LoadTap(g, 1, kx);
        row[kx] = Add16(s, g1);
        other[kx] = Sub16(s, g1);
      } else {
        const __m256i q = Add16(LoadTap(g, 0, kx), _mm256_slli_epi16(LoadTap(g, 2, kx), 2));
        const __m256i e = _mm256_slli_epi16(LoadTap(g, 1, kx), 1);
        row[kx] = Add16(q, e);
        other[kx] = Sub16(q, e);
      }
    }
    StoreWeightRow(row, first, position_stride);
    StoreWeightRow(other, second, position_stride);
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

// out = E^T m, row r scaled by f[r] = 24, 12, 6, 6.
inline void OutputColumn(const __m256i m[6], __m256i out[4]) {
  const __m256i a = Add32(m[1], m[2]), b = Add32(m[3], m[4]);
  const __m256i c = Sub32(m[1], m[2]), d = Sub32(m[3], m[4]);
  out[0] = Add32(Add32(m[0], _mm256_slli_epi32(a, 2)), b);
  out[1] = Add32(Add32(c, c), d);
  out[2] = Add32(a, b);
  out[3] = Add32(Add32(c, m[5]), Add32(d, d));
}

// sums[4*r + s] = Y[r][s] of eight channels.
inline void OutputTile(const int32_t* c, int64_t position_stride, __m256i sums[16]) {
  __m256i half[6][4];
  for (int i = 0; i < 6; ++i) {
    __m256i m[6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) m[j] = LoadVector(c + (6 * i + j) * position_stride);
    OutputColumn(m, half[i]);
  }
  const __m256i inverse_of_9 = _mm256_set1_epi32(0x38e38e39);
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const __m256i m[6] = {half[0][s], half[1][s], half[2][s], half[3][s], half[4][s], half[5][s]};
    __m256i y[4];
    OutputColumn(m, y);
    const int shift = s == 0 ? 3 : s == 1 ? 2 : 1;  // f[s] = 3 * 2^shift
    sums[0 + s] = _mm256_srai_epi32(_mm256_mullo_epi32(y[0], inverse_of_9), shift + 3);
    sums[4 + s] = _mm256_srai_epi32(_mm256_mullo_epi32(y[1], inverse_of_9), shift + 2);
    sums[8 + s] = _mm256_srai_epi32(_mm256_mullo_epi32(y[2], inverse_of_9), shift + 1);
    sums[12 + s] = _mm256_srai_epi32(_mm256_mullo_epi32(y[3], inverse_of_9), shift + 1);
  }
}

template <OutputKind kKind>
void StoreTile(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t position_stride, int rows,
               int columns) {
  const PanelConstants constants = PanelConstantsOf(stage, to.channel);
  const Destination place = to;
  __m256i sums[2][16];
  OutputTile(c, position_stride, sums[0]);
  OutputTile(c + 8, position_stride, sums[1]);
  for (int r = 0; r < rows; ++r) {
    for (int s = 0; s < columns; ++s) {
      StoreAvx2<kKind>(constants, place, r * place.row_stride + s * place.pixel_stride, place.channels,
                       sums[0][4 * r + s], sums[1][4 * r + s]);
    }
  }
}

void TransformOutput(const OutputStage& stage, const Destination& to, const int32_t* c, int64_t position_stride,
                     int rows, int columns) {
  switch (OutputKindOf(stage)) {
    case OutputKind::kCodes: return StoreTile<OutputKind::kCodes>(stage, to, c, position_stride, rows, columns);
    case OutputKind::kCodesWithResidual:
      return StoreTile<OutputKind::kCodesWithResidual>(stage, to, c, position_stride, rows, columns);
    case OutputKind::kFloat: return StoreTile<OutputKind::kFloat>(stage, to, c, position_stride, rows, columns);
  }
}

constexpr WinogradPrimitives kWinograd = {
    /*transform_input=*/TransformInput, /*transform_weight=*/TransformWeight, /*multiply=*/MultiplyAvx2,
    /*transform_output=*/TransformOutput};

}  // namespace

const WinogradPrimitives& WinogradAvx2() { return kWinograd; }

}  // namespace fuselage::int8::conv2d

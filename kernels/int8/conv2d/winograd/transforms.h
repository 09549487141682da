// The transforms of winograd.cc, which has the matrices and the proof, for any width of vector. V names the vector and
// its operations: Vector; Add16, Sub16, Shift16<n> on int16 lanes, which wrap; Add32, Sub32, Shift32<n>, Multiply32,
// ShiftRight32 on int32 lanes; Load, Store; LoadCodes(p, flip), int8 ^ flip as int16. Everything is local to the
// including source: see core/loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_TRANSFORMS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_TRANSFORMS_H_

#include <stdint.h>
#include <string.h>

#include "kernels/int8/conv2d/winograd/loops.h"

namespace fuselage::int8::conv2d::winograd {
namespace {

// out = B'^T d
template <typename V>
inline void InputColumn(const typename V::Vector d[6], typename V::Vector out[6]) {
  const auto e = V::Sub16(V::template Shift16<2>(d[2]), d[4]);
  const auto f = V::Sub16(V::template Shift16<2>(d[1]), d[3]);
  const auto g = V::Sub16(d[4], d[2]);
  const auto h = V::template Shift16<1>(V::Sub16(d[3], d[1]));
  out[0] = V::Add16(V::template Shift16<2>(V::Sub16(d[0], d[2])), g);
  out[1] = V::Add16(e, f);
  out[2] = V::Sub16(e, f);
  out[3] = V::Add16(g, h);
  out[4] = V::Sub16(g, h);
  out[5] = V::Sub16(V::Sub16(d[5], d[3]), V::Add16(h, h));
}

// load(i, j): the patch's pixel; store(i, j, v): the transformed patch.
template <typename V, typename LoadPixel, typename StorePixel>
__attribute__((always_inline)) inline void InputTile(LoadPixel load, StorePixel store) {
  typename V::Vector half[6][6];  // [i][j]: along j done.
  for (int i = 0; i < 6; ++i) {
    typename V::Vector d[6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) d[j] = load(i, j);
    InputColumn<V>(d, half[i]);
  }
  for (int j = 0; j < 6; ++j) {
    const typename V::Vector d[6] = {half[0][j], half[1][j], half[2][j], half[3][j], half[4][j], half[5][j]};
    typename V::Vector out[6];
    InputColumn<V>(d, out);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) store(i, j, out[i]);
  }
}

// Loops::transform_input; Narrow: a vector for fewer channels than V has lanes. What lies behind the last channel is
// anything: weights there are 0.
template <typename V, typename Narrow = V>
void TransformInput(const uint8_t* const pixels[36], int channels, uint8_t flip, int16_t* v, int64_t position_stride) {
  constexpr int kLanes = sizeof(typename V::Vector) / sizeof(int16_t);
  for (int first = 0; channels >= kLanes && first < channels; first += kLanes) {
    const int channel = first + kLanes <= channels ? first : channels - kLanes;  // The last may begin within another.
    InputTile<V>(
        [&](int i, int j) { return V::LoadCodes(pixels[6 * i + j] + channel, flip); },
        [&](int i, int j, typename V::Vector out) { V::Store(v + (6 * i + j) * position_stride + channel, out); });
  }
  if (channels >= kLanes) return;
  if constexpr (sizeof(typename Narrow::Vector) < sizeof(typename V::Vector)) {
    return TransformInput<Narrow>(pixels, channels, flip, v, position_stride);
  }
  // Nothing is read past the tensor's end.
  uint8_t copy[36][kLanes] = {};
  for (int p = 0; p < 36; ++p) memcpy(copy[p], pixels[p], channels);
  InputTile<V>([&](int i, int j) { return V::LoadCodes(copy[6 * i + j], flip); },
               [&](int i, int j, typename V::Vector out) { V::Store(v + (6 * i + j) * position_stride, out); });
}

template <typename V>
inline typename V::Vector Times6(typename V::Vector x) {
  return V::Add16(V::template Shift16<2>(x), V::template Shift16<1>(x));
}

// out = H g
template <typename V>
inline void WeightColumn(typename V::Vector g0, typename V::Vector g1, typename V::Vector g2,
                         typename V::Vector out[6]) {
  const auto s = V::Add16(g0, g2);
  const auto q = V::Add16(g0, V::template Shift16<2>(g2));
  const auto e = V::Add16(g1, g1);
  out[0] = Times6<V>(g0);
  out[1] = V::Add16(s, g1);
  out[2] = V::Sub16(s, g1);
  out[3] = V::Add16(q, e);
  out[4] = V::Sub16(q, e);
  out[5] = Times6<V>(g2);
}

// A pair of rows of H g H^T, kWeightRowPairs[kRowPair], of one vector of weights. tap(ky, kx) loads; row 0 or 1 of the
// pair and column j go to store(row, j, v).
template <typename V, int kRowPair, typename LoadTap, typename StoreTap>
__attribute__((always_inline)) inline void WeightRows(LoadTap tap, StoreTap store) {
  typename V::Vector rows[2][3];
#pragma GCC unroll 3
  for (int kx = 0; kx < 3; ++kx) {
    if (kRowPair == 0) {
      rows[0][kx] = Times6<V>(tap(0, kx));
      rows[1][kx] = Times6<V>(tap(2, kx));
    } else if (kRowPair == 1) {
      const auto s = V::Add16(tap(0, kx), tap(2, kx)), g1 = tap(1, kx);
      rows[0][kx] = V::Add16(s, g1);
      rows[1][kx] = V::Sub16(s, g1);
    } else {
      const auto q = V::Add16(tap(0, kx), V::template Shift16<2>(tap(2, kx)));
      const auto e = V::template Shift16<1>(tap(1, kx));
      rows[0][kx] = V::Add16(q, e);
      rows[1][kx] = V::Sub16(q, e);
    }
  }
#pragma GCC unroll 2
  for (int row = 0; row < 2; ++row) {
    typename V::Vector out[6];
    WeightColumn<V>(rows[row][0], rows[row][1], rows[row][2], out);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) store(row, j, out[j]);
  }
}

// Of 16 output channels by 2 input channels, as many at a time as a vector has.
template <typename V, int kRowPair>
void TransformWeightRows(const int8_t* g, int64_t depth, char* first, char* second, int64_t position_stride) {
  constexpr int kCodes = sizeof(typename V::Vector) / sizeof(int16_t), kPair = 2 * kPanel;
  for (int64_t k = 0; k < depth; ++k, g += 9 * kPair) {
    for (int part = 0; part < kPair; part += kCodes) {
      WeightRows<V, kRowPair>([&](int ky, int kx) { return V::LoadCodes(g + (3 * ky + kx) * kPair + part, 0); },
                              [&](int row, int j, typename V::Vector out) {
                                V::Store((row == 0 ? first : second) + j * position_stride, out);
                              });
      first += sizeof(typename V::Vector);
      second += sizeof(typename V::Vector);
    }
  }
}

// Loops::transform_weight.
template <typename V>
void TransformWeight(const int8_t* g, int64_t depth, int row_pair, void* first, void* second, int64_t position_stride) {
  char* to = static_cast<char*>(first);
  char* other = static_cast<char*>(second);
  switch (row_pair) {
    case 0: return TransformWeightRows<V, 0>(g, depth, to, other, position_stride);
    case 1: return TransformWeightRows<V, 1>(g, depth, to, other, position_stride);
    default: return TransformWeightRows<V, 2>(g, depth, to, other, position_stride);
  }
}

// out = E^T m, row r scaled by f[r] = 24, 12, 6, 6.
template <typename V>
inline void OutputColumn(const typename V::Vector m[6], typename V::Vector out[4]) {
  const auto a = V::Add32(m[1], m[2]), b = V::Add32(m[3], m[4]);
  const auto c = V::Sub32(m[1], m[2]), d = V::Sub32(m[3], m[4]);
  out[0] = V::Add32(V::Add32(m[0], V::template Shift32<2>(a)), b);
  out[1] = V::Add32(V::Add32(c, c), d);
  out[2] = V::Add32(a, b);
  out[3] = V::Add32(V::Add32(c, m[5]), V::Add32(d, d));
}

// Loops::transform_output of a vector of channels.
template <typename V>
inline void OutputTile(const int32_t* c, int64_t position_stride, int32_t* sums) {
  typename V::Vector half[6][4];
  for (int i = 0; i < 6; ++i) {
    typename V::Vector m[6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) m[j] = V::Load(c + (6 * i + j) * position_stride);
    OutputColumn<V>(m, half[i]);
  }
  constexpr int kInverseOf9 = 0x38e38e39;
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    const typename V::Vector m[6] = {half[0][s], half[1][s], half[2][s], half[3][s], half[4][s], half[5][s]};
    typename V::Vector y[4];
    OutputColumn<V>(m, y);
    const auto shift = [](int i) { return i == 0 ? 3 : i == 1 ? 2 : 1; };  // f[i] = 3 * 2^shift
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const auto sum = V::ShiftRight32(V::Multiply32(y[r], kInverseOf9), shift(r) + shift(s));
      V::Store(sums + (4 * r + s) * kPanel, sum);
    }
  }
}

// Loops::transform_output.
template <typename V>
void TransformOutput(const int32_t* accumulators, int64_t position_stride, int32_t* sums) {
  constexpr int kLanes = sizeof(typename V::Vector) / sizeof(int32_t);
  for (int channel = 0; channel < kPanel; channel += kLanes) {
    OutputTile<V>(accumulators + channel, position_stride, sums + channel);
  }
}

}  // namespace
}  // namespace fuselage::int8::conv2d::winograd

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_WINOGRAD_TRANSFORMS_H_

// The products of depthwise convolution, for any vector of int32 lanes. A lane is a channel; a column that several
// outputs read is loaded once for them. Everything is local to the including source: see core/loops.h.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_PRODUCT_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_PRODUCT_H_

#include "kernels/int8/conv2d/depthwise/loops.h"

namespace fuselage::int8::conv2d::depthwise {
namespace {

constexpr int kMaxDepthwisePixels = 8;  // Registers of sums.

// Isa::Add(sum, taps, weights) adds the products of each lane's taps, which LoadColumn loads from ColumnOffset of the
// first lane on. Isa::kLines: sums follow each other without a gap, and those behind the last are written, too.
// kTaps: of a kernel row, 0 where it is known at run time only; kStride: columns from pixel to pixel,
// where kTaps is not 0.
template <typename Isa, int kTaps, int kStride, int kPixels>
void MultiplyPixels(const Product& m, int64_t pixel) {
  constexpr int kLanes = sizeof(typename Isa::Vector) / kDwordBytes;
  const uint8_t* const columns = m.columns + pixel * m.pixel_step;
  const int64_t pixel_step = m.pixel_step, tap_step = m.tap_step, runs = m.runs, channels = m.channels;
  const int64_t sum_step = Isa::kLines ? channels : kBlock;
  int32_t* const sums = m.sums + pixel * sum_step;
  // The last lanes of a line begin among those before, for the next pixel's first sums are there already.
  const int64_t last = Isa::kLines && channels >= kLanes ? channels - kLanes : channels;
  for (int64_t first = 0; first < channels; first += kLanes) {
    const int64_t lane = Isa::kLines && first > last ? last : first;
    typename Isa::Vector sum[kPixels];
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sum[p] = Isa::Zero();
    const uint8_t* weight = m.weight + lane * kDwordBytes;
    for (int64_t run = 0; run < runs; ++run) {
      const uint8_t* column = columns + m.offsets[run] + Isa::ColumnOffset(lane, m.group_channels);
      if constexpr (kTaps == 0) {
        for (int tap = 0; tap < m.taps; ++tap, weight += kStepBytes, column += tap_step) {
          const typename Isa::Vector weights = Isa::Load(weight);
#pragma GCC unroll 8
          for (int p = 0; p < kPixels; ++p)
            sum[p] = Isa::Add(sum[p], Isa::LoadColumn(column + p * pixel_step), weights);
        }
      } else {
        typename Isa::Vector weights[kTaps];
#pragma GCC unroll 8
        for (int tap = 0; tap < kTaps; ++tap, weight += kStepBytes) weights[tap] = Isa::Load(weight);
#pragma GCC unroll 32
        for (int c = 0; c < (kPixels - 1) * kStride + kTaps; ++c, column += tap_step) {
          const typename Isa::Vector taps = Isa::LoadColumn(column);
#pragma GCC unroll 8
          for (int p = 0; p < kPixels; ++p) {
            const int tap = c - p * kStride;
            if (tap >= 0 && tap < kTaps) sum[p] = Isa::Add(sum[p], taps, weights[tap]);
          }
        }
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) Isa::Store(sums + p * sum_step + lane, sum[p]);
  }
}

template <typename Isa, int kTaps, int kStride>
void MultiplyRow(const Product& m) {
  const int64_t parts = (m.pixels + kMaxDepthwisePixels - 1) / kMaxDepthwisePixels;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t pixel = m.pixels * part / parts;
    switch (m.pixels * (part + 1) / parts - pixel) {
      case 1: MultiplyPixels<Isa, kTaps, kStride, 1>(m, pixel); break;
      case 2: MultiplyPixels<Isa, kTaps, kStride, 2>(m, pixel); break;
      case 3: MultiplyPixels<Isa, kTaps, kStride, 3>(m, pixel); break;
      case 4: MultiplyPixels<Isa, kTaps, kStride, 4>(m, pixel); break;
      case 5: MultiplyPixels<Isa, kTaps, kStride, 5>(m, pixel); break;
      case 6: MultiplyPixels<Isa, kTaps, kStride, 6>(m, pixel); break;
      case 7: MultiplyPixels<Isa, kTaps, kStride, 7>(m, pixel); break;
      default: MultiplyPixels<Isa, kTaps, kStride, 8>(m, pixel); break;
    }
  }
}

// The kernels of networks are 3, 5 or 7 wide, and their strides 1 or 2.
template <typename Isa>
void MultiplyColumns(const Product& m) {
  const int64_t stride = m.pixel_step / m.tap_step;
  if (m.pixel_step % m.tap_step == 0 && stride <= 2) {
    switch (m.taps * 10 + stride) {
      case 31: return MultiplyRow<Isa, 3, 1>(m);
      case 32: return MultiplyRow<Isa, 3, 2>(m);
      case 51: return MultiplyRow<Isa, 5, 1>(m);
      case 52: return MultiplyRow<Isa, 5, 2>(m);
      case 71: return MultiplyRow<Isa, 7, 1>(m);
      case 72: return MultiplyRow<Isa, 7, 2>(m);
      default: break;
    }
  }
  return MultiplyRow<Isa, 0, 0>(m);
}

}  // namespace
}  // namespace fuselage::int8::conv2d::depthwise

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_DEPTHWISE_PRODUCT_H_

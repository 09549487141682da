// The mean of windows of codes, for kernels that need one.
//
// The taps of a window are shared out to `slices` threads, each for 16 channels. Sums lie in shared memory as
// [slices][groups][16] int32, `groups` of 16 channels, until all slices are there.
#ifndef FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_MEAN_H_
#define FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_MEAN_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/codes.h"

namespace fuselage::int8::avg_pool2d::cuda {

// Zero points and clamp are those of the unsigned form (see UnsignedForm).
struct Mean {
  uint8_t flip_x = 0, flip_y = 0;
  int32_t zero_point_x = 0, zero_point_y = 0;
  float scale_x = 1, scale_y = 1;
  int32_t lo = 0, hi = 255;
};

// Taps in rows, from the first one's first channel; steps in bytes.
struct TapGrid {
  const uint8_t* first;
  int32_t rows, columns;
  int64_t row_step, column_step;
};

FUSELAGE_HOST_DEVICE uint32_t SumOffset(int slice, int group, int groups) {
  return static_cast<uint32_t>((slice * groups + group) * 64);
}

// The sums of `channels` channels, at most 16, over every slices-th tap, to shared memory.
FUSELAGE_DEVICE void SumTaps(fuselage::cuda::Thread thread, const Mean& mean, const TapGrid& taps, int slice,
                             int slices, int channels, uint32_t offset) {
  constexpr int kAtOnce = 4;  // Loads that do not wait for each other.
  int32_t sums[16] = {};
  const int32_t count = taps.rows * taps.columns;
  for (int32_t first = slice; first < count; first += kAtOnce * slices) {
    fuselage::cuda::Codes16 codes[kAtOnce];
    FUSELAGE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const int32_t tap = first + i * slices, row = taps.rows == 1 ? 0 : tap / taps.columns;
      const uint8_t* from = taps.first + row * taps.row_step + (tap - row * taps.columns) * taps.column_step;
      codes[i].values[0] = codes[i].values[1] = codes[i].values[2] = codes[i].values[3] = 0;
      if (tap < count) codes[i] = fuselage::cuda::LoadCodes(thread, from, channels);
    }
    FUSELAGE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const uint32_t flip = first + i * slices < count ? fuselage::cuda::Splat(mean.flip_x) : 0;
      FUSELAGE_UNROLL
      for (int c = 0; c < 16; ++c) {
        sums[c] = fuselage::cuda::MultiplyBytes<uint8_t>(codes[i].values[c / 4] ^ flip, 1u << 8 * (c % 4), sums[c]);
      }
    }
  }
  FUSELAGE_UNROLL
  for (int c = 0; c < 16; c += 4) {
    thread.StoreShared(offset + 4 * c,
                       fuselage::cuda::Vector<int32_t, 4>{{sums[c], sums[c + 1], sums[c + 2], sums[c + 3]}});
  }
}

// The codes of channels [4 * word, 4 * word + 4) of a group, when the sums are there. `taps`: in the sums. `count`:
// that they are divided by.
FUSELAGE_DEVICE uint32_t MeanWord(fuselage::cuda::Thread thread, const Mean& mean, int32_t taps, int32_t count,
                                  int slices, int group, int groups, int word) {
  fuselage::cuda::Vector<int32_t, 4> sums = {};
  for (int slice = 0; slice < slices; ++slice) {
    const auto part =
        thread.LoadShared<fuselage::cuda::Vector<int32_t, 4>>(SumOffset(slice, group, groups) + 16 * word);
    FUSELAGE_UNROLL
    for (int i = 0; i < 4; ++i) sums.values[i] += part.values[i];
  }
  const float multiplier =
      taps == 0 ? 0.0f
                : fuselage::cuda::Divide(mean.scale_x,
                                         fuselage::cuda::Multiply(mean.scale_y, fuselage::cuda::ToFloat(count)));
  uint32_t codes = 0;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float v = fuselage::cuda::Rescale(sums.values[i] - taps * mean.zero_point_x, multiplier);
    codes |= fuselage::cuda::CodeAt(fuselage::cuda::ToCode(v, {mean.zero_point_y, mean.lo, mean.hi}), i);
  }
  return codes ^ fuselage::cuda::Splat(mean.flip_y);
}

}  // namespace fuselage::int8::avg_pool2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_MEAN_H_

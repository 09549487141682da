// Groups of one channel each: a thread has four neighbouring channels of an output pixel. Weights are packed
// [kernel_height, kernel_width, channels]. The grid is [outputs / (4 * threads)], rounded up.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DEPTHWISE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DEPTHWISE_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// X: uint8_t or int8_t, the input's codes. The channels are a multiple of 4.
template <typename X>
struct Depthwise {
  using Params = cuda::Params;
  static constexpr int kWarps = 4;
  static constexpr int kBlocks = 4;
  static constexpr int kPerBlock = kWarps * kWarpSize * 4;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int64_t index = int64_t{block.x()} * kPerBlock + thread.index() * 4;
        if (index >= int64_t{p.rows} * p.out_channels) return;
        const int channel = static_cast<int>(index % p.out_channels);
        const auto sums = Accumulate(p, thread, static_cast<int>(index / p.out_channels), channel);
        StoreFour(p, thread, sums, channel, 4, index);
      });
    });
  }

 private:
  FUSELAGE_DEVICE static Vector<int32_t, 4> Accumulate(const Params& p, Thread thread, int row, int channel) {
    const int out_x = row % p.out_width, line = row / p.out_width;
    const int first_y = line % p.out_height * p.stride_y - p.pad_top, first_x = out_x * p.stride_x - p.pad_left;
    const uint8_t* image = p.input + int64_t{line / p.out_height} * p.in_height * p.in_width * p.in_channels + channel;
    const int8_t* weight = p.weight + channel;
    Vector<int32_t, 4> sums = {};
    for (int tap_y = 0; tap_y < p.kernel_height; ++tap_y) {
      const int y = first_y + tap_y * p.dilation_y;
      FUSELAGE_UNROLL_BY_4
      for (int tap_x = 0; tap_x < p.kernel_width; ++tap_x, weight += p.in_channels) {
        const int x = first_x + tap_x * p.dilation_x;
        const bool inside = y >= 0 && y < p.in_height && x >= 0 && x < p.in_width;
        const uint8_t* from = inside ? image + (int64_t{y} * p.in_width + x) * p.in_channels : p.padding;
        const auto codes = thread.Load(reinterpret_cast<const Vector<X, 4>*>(from));
        const auto weights = thread.LoadConstant(reinterpret_cast<const Vector<int8_t, 4>*>(weight));
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) sums.values[i] += codes.values[i] * weights.values[i];
      }
    }
    return sums;
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DEPTHWISE_H_

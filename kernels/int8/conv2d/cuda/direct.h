// One output per thread, by the definition: what runs where no other kernel does, and their oracle on a device.
// Weights are packed [out_channels, kernel_height, kernel_width, in_channels / groups]. The grid is [outputs /
// threads], rounded up.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DIRECT_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DIRECT_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

template <typename X>
struct Direct {
  using Params = cuda::Params;
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = 2;
  static constexpr int kPerBlock = kWarps * kWarpSize;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int64_t index = int64_t{block.x()} * kPerBlock + thread.index();
        if (index >= int64_t{p.rows} * p.out_channels) return;
        const int channel = static_cast<int>(index % p.out_channels);
        const int32_t sum = Accumulate(p, thread, static_cast<int>(index / p.out_channels), channel);
        const int32_t bias = thread.LoadConstant(p.bias + channel);
        const float multiplier = thread.LoadConstant(p.multiplier + channel);
        if (p.float_bias != nullptr) {
          thread.Store(
              static_cast<float*>(p.output) + index,
              Activated(p, ToOutputFloat(p, sum, bias, multiplier, thread.LoadConstant(p.float_bias + channel))));
        } else {
          const uint8_t residual = p.residual == nullptr ? uint8_t{0} : thread.Load(p.residual + index);
          thread.Store(static_cast<uint8_t*>(p.output) + index, ToActivatedCode(p, sum, bias, multiplier, residual));
        }
      });
    });
  }

 private:
  FUSELAGE_DEVICE static int32_t Accumulate(const Params& p, Thread thread, int row, int channel) {
    const int channels = p.in_channels / p.groups;
    const int first_channel = channel / (p.out_channels / p.groups) * channels;
    const int out_x = row % p.out_width, line = row / p.out_width;
    const int out_y = line % p.out_height, image = line / p.out_height;
    const int8_t* w = p.weight + int64_t{channel} * p.kernel_height * p.kernel_width * channels;
    const int32_t zero_point = static_cast<X>(p.padding);
    int32_t sum = 0;
    for (int tap_y = 0; tap_y < p.kernel_height; ++tap_y) {
      const int64_t y = int64_t{out_y} * p.stride_y - p.pad_top + int64_t{tap_y} * p.dilation_y;
      for (int tap_x = 0; tap_x < p.kernel_width; ++tap_x, w += channels) {
        const int64_t x = int64_t{out_x} * p.stride_x - p.pad_left + int64_t{tap_x} * p.dilation_x;
        if (y < 0 || y >= p.in_height || x < 0 || x >= p.in_width) {
          for (int c = 0; c < channels; ++c) sum += zero_point * thread.LoadConstant(w + c);
        } else {
          const uint8_t* from =
              p.input + ((int64_t{image} * p.in_height + y) * p.in_width + x) * p.in_channels + first_channel;
          for (int c = 0; c < channels; ++c) sum += static_cast<X>(thread.Load(from + c)) * thread.LoadConstant(w + c);
        }
      }
    }
    return sum;
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DIRECT_H_

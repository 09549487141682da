// Finishes the outputs of a Gemm with a function (Params::activated), from its sums.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_FINISH_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_FINISH_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// A thread has four channels of a pixel; the grid is [rows * padded_channels / (4 * threads), 1, 1], rounded up.
struct Finish {
  using Params = cuda::Params;
  static constexpr int kWarps = 2;  // Small blocks reach all multiprocessors where outputs are few.
  static constexpr int kBlocks = 8;
  static constexpr int kPerBlock = kWarps * kWarpSize * 4;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int64_t first = int64_t{block.x()} * kPerBlock + thread.index() * 4;
        const int64_t row = first / p.padded_channels;
        const int channel = static_cast<int>(first % p.padded_channels);
        if (row >= p.rows || channel >= p.out_channels) return;
        const auto sums = thread.Load(reinterpret_cast<const Vector<int32_t, 4>*>(p.sums + first));
        const int channels = p.out_channels - channel < 4 ? p.out_channels - channel : 4;
        const int64_t index = row * p.out_channels + channel;
        StoreFour(p, thread,
                  p.float_bias != nullptr ? FourFloats(p, thread, sums, channel, channels)
                                          : FourValues(p, thread, sums, channel, channels, index),
                  channels, index);
      });
    });
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_FINISH_H_

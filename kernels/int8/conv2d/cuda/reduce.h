// Adds what the splits of a Gemm left, and finishes the outputs, which of a Gemm with a function (Params::activated) it
// always does. Integer sums: the order does not matter.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_REDUCE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_REDUCE_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// A thread has four channels of a pixel; the grid is [rows * padded_channels / (4 * threads), 1, 1], rounded up.
struct Reduce {
  using Params = cuda::Params;
  static constexpr int kWarps = 2;  // Splits are many where outputs are few: small blocks reach all multiprocessors.
  static constexpr int kBlocks = 8;
  static constexpr int kPerBlock = kWarps * kWarpSize * 4;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int64_t first = int64_t{block.x()} * kPerBlock + thread.index() * 4;
        const int64_t row = first / p.padded_channels;
        const int channel = static_cast<int>(first % p.padded_channels);
        if (row >= p.rows || channel >= p.out_channels) return;
        Vector<int32_t, 4> sums = {};
        for (int split = 0; split < p.splits; ++split) {
          const auto more = thread.Load(reinterpret_cast<const Vector<int32_t, 4>*>(
              p.partial + int64_t{split} * p.rows * p.padded_channels + first));
          for (int i = 0; i < 4; ++i) sums.values[i] += more.values[i];
        }
        const int channels = p.out_channels - channel < 4 ? p.out_channels - channel : 4;
        StoreFour(p, thread, sums, channel, channels, row * p.out_channels + channel);
      });
    });
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_REDUCE_H_

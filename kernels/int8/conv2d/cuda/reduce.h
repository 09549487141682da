// Adds what the splits of a Gemm left, and finishes the outputs. Integer sums: the order does not matter.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_REDUCE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_REDUCE_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// A thread has four channels of a pixel; the grid is [rows * padded_channels / (4 * threads), 1, 1], rounded up.
struct Reduce {
  using Params = cuda::Params;
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = 2;
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
        const int64_t index = row * p.out_channels + channel;
        const int channels = p.out_channels - channel < 4 ? p.out_channels - channel : 4;
        if (p.float_bias != nullptr) {
          for (int i = 0; i < channels; ++i) {
            thread.Store(
                static_cast<float*>(p.output) + index + i,
                ToOutputFloat(p, sums.values[i], thread.Load(p.bias + channel + i),
                              thread.Load(p.multiplier + channel + i), thread.Load(p.float_bias + channel + i)));
          }
          return;
        }
        const bool aligned = p.out_channels % 4 == 0;
        Vector<uint8_t, 4> codes = {};
        if (p.residual != nullptr) {
          if (aligned) {
            codes = thread.Load(reinterpret_cast<const Vector<uint8_t, 4>*>(p.residual + index));
          } else {
            for (int i = 0; i < channels; ++i) codes.values[i] = thread.Load(p.residual + index + i);
          }
        }
        const auto bias = thread.Load(reinterpret_cast<const Vector<int32_t, 4>*>(p.bias + channel));
        const auto multiplier = thread.Load(reinterpret_cast<const Vector<float, 4>*>(p.multiplier + channel));
        for (int i = 0; i < 4; ++i) {
          codes.values[i] = ToOutputCode(p, sums.values[i], bias.values[i], multiplier.values[i], codes.values[i]);
        }
        uint8_t* to = static_cast<uint8_t*>(p.output) + index;
        if (aligned) {
          thread.Store(reinterpret_cast<Vector<uint8_t, 4>*>(to), codes);
        } else {
          for (int i = 0; i < channels; ++i) thread.Store(to + i, codes.values[i]);
        }
      });
    });
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_REDUCE_H_

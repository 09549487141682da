// The max pool of a convolution whose kernel does not pool itself. The input is what that stored.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOL_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOL_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// A thread has one code; the grid is [codes / threads], rounded up.
struct Pool {
  using Params = cuda::Params;
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = 2;
  static constexpr int kPerBlock = kWarps * kWarpSize;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int64_t index = int64_t{block.x()} * kPerBlock + thread.index();
        const int channel = static_cast<int>(index % p.out_channels);
        const int64_t pixel = index / p.out_channels, line = pixel / p.pool.out_width;
        const int64_t image = line / p.pool.out_height;
        if (image * p.out_height * p.out_width >= p.rows) return;
        const int first_y = static_cast<int>(line % p.pool.out_height) * p.pool.stride_y - p.pool.pad_top;
        const int first_x = static_cast<int>(pixel % p.pool.out_width) * p.pool.stride_x - p.pool.pad_left;
        uint8_t largest = 0;
        for (int tap_y = 0; tap_y < p.pool.kernel_y; ++tap_y) {
          const int y = first_y + tap_y * p.pool.dilation_y;
          for (int tap_x = 0; tap_x < p.pool.kernel_x; ++tap_x) {
            const int x = first_x + tap_x * p.pool.dilation_x;
            if (y < 0 || y >= p.out_height || x < 0 || x >= p.out_width) continue;
            const uint8_t code =
                thread.Load(p.input + ((image * p.out_height + y) * p.out_width + x) * p.out_channels + channel) ^
                p.output_flip;
            if (code > largest) largest = code;
          }
        }
        thread.Store(static_cast<uint8_t*>(p.output) + index, static_cast<uint8_t>(largest ^ p.output_flip));
      });
    });
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOL_H_

// int8.avg_pool2d and int8.global_avg_pool on CUDA devices: the taps of a window are shared out to several threads.
#ifndef FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_AVG_POOL2D_CUDA_H_
#define FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_AVG_POOL2D_CUDA_H_

#include <cstdint>

#include "kernels/cuda/pool_window.h"
#include "kernels/int8/avg_pool2d/cuda/mean.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::avg_pool2d::cuda {

constexpr int kBlockWarps = 4;

struct LaunchParams {
  fuselage::cuda::PoolWindow window;
  Mean mean;
  bool count_include_pad = false;
  uint32_t items = 0;           // [batch][out height][out width][channel_groups], below 2^31
  uint32_t channel_groups = 0;  // 16 channels each.
  int slices = 1;               // Threads of an item: a power of two, at most 32.
  int blocks = 0;
  const uint8_t* x = nullptr;  // NHWC, 16-byte aligned, as y.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::avg_pool2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_AVG_POOL2D_CUDA_AVG_POOL2D_CUDA_H_

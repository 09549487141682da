// int8.max_pool2d on CUDA devices: sixteen channels of an output pixel a thread.
#ifndef FUSELAGE_KERNELS_INT8_MAX_POOL2D_CUDA_MAX_POOL2D_CUDA_H_
#define FUSELAGE_KERNELS_INT8_MAX_POOL2D_CUDA_MAX_POOL2D_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"
#include "kernels/cuda/pool_window.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::max_pool2d::cuda {

struct LaunchParams {
  fuselage::cuda::PoolWindow window;
  fuselage::cuda::Items items;  // [batch][out height][out width][channel_groups]
  uint32_t channel_groups = 0;  // 16 channels each.
  uint8_t flip = 0;             // What makes codes unsigned.
  const uint8_t* x = nullptr;   // NHWC, 16-byte aligned, as y.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::max_pool2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_MAX_POOL2D_CUDA_MAX_POOL2D_CUDA_H_

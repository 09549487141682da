// int8.global_avg_pool_linear on CUDA devices. Few images: one kernel, in which each block takes the mean of an image's
// channels itself, for eight channels of the layer. Many: the two kernels, one after the other.
#ifndef FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_CUDA_GLOBAL_AVG_POOL_LINEAR_CUDA_H_
#define FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_CUDA_GLOBAL_AVG_POOL_LINEAR_CUDA_H_

#include <cstdint>

#include "kernels/int8/avg_pool2d/cuda/mean.h"
#include "kernels/int8/linear/cuda/layer.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::global_avg_pool_linear::cuda {

constexpr int kBlockWarps = 8;
constexpr int kBlockChannels = 8;  // The layer's channels in a block.

struct LaunchParams {
  avg_pool2d::cuda::Mean mean;
  linear::cuda::Layer layer;
  bool means_are_signed = false;
  int32_t images = 0, pixels = 0;  // At most 65535 images.
  int32_t groups = 0, slices = 1;  // Groups of 16 channels, slices of the pixels: mean.h.
  const uint8_t* x = nullptr;      // [images][pixels][layer.depth], 16-byte aligned.
  void* y = nullptr;               // [images][layer.channels]
};

// At most 48 KiB.
int64_t SharedBytes(const LaunchParams& params);
void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::global_avg_pool_linear::cuda

#endif  // FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_CUDA_GLOBAL_AVG_POOL_LINEAR_CUDA_H_

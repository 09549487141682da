// int8.dequantize on CUDA devices: four channels of four pixels a thread.
#ifndef FUSELAGE_KERNELS_INT8_DEQUANTIZE_CUDA_DEQUANTIZE_CUDA_H_
#define FUSELAGE_KERNELS_INT8_DEQUANTIZE_CUDA_DEQUANTIZE_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"
#include "kernels/int8/dequantize/dequantize_params.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::dequantize::cuda {

struct LaunchParams {
  dequantize::Params dequantize;
  fuselage::cuda::Items items;                    // [images][channel_groups][pixel_groups]
  uint32_t pixel_groups = 0, channel_groups = 0;  // An image's groups of four.
  const uint8_t* x = nullptr;                     // 16-byte aligned, as y.
  float* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::dequantize::cuda

#endif  // FUSELAGE_KERNELS_INT8_DEQUANTIZE_CUDA_DEQUANTIZE_CUDA_H_

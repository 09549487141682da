// int8.lookup on CUDA devices: four channels of four pixels a thread, placed as int8.quantize places them.
#ifndef FUSELAGE_KERNELS_INT8_LOOKUP_CUDA_LOOKUP_CUDA_H_
#define FUSELAGE_KERNELS_INT8_LOOKUP_CUDA_LOOKUP_CUDA_H_

#include <cstdint>

#include "kernels/int8/lookup/lookup_params.h"
#include "kernels/int8/quantize/cuda/pixel_groups.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::lookup::cuda {

struct LaunchParams {
  lookup::Params lookup;
  quantize::cuda::PixelGroups groups;
  const uint8_t* tables = nullptr;
  uint8_t padding = 0;         // The code of what lies between the pixels.
  const uint8_t* x = nullptr;  // 4-byte aligned, and y 16-byte.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::lookup::cuda

#endif  // FUSELAGE_KERNELS_INT8_LOOKUP_CUDA_LOOKUP_CUDA_H_

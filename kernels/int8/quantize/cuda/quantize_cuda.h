// int8.quantize on CUDA devices: four channels of four pixels a thread.
//
// Also to pixels that are further apart than they have channels (Placement::pixel_bytes, such as 4 for the 3 channels
// of an image): what lies between gets the zero point. Other placements are declined.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_QUANTIZE_CUDA_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_QUANTIZE_CUDA_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"
#include "kernels/int8/quantize/cuda/pixel_groups.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::quantize::cuda {

struct LaunchParams {
  PixelGroups groups;
  bool planes = true;  // Of x, else pixels.
  fuselage::cuda::Quantizer quantizer = {};
  const float* x = nullptr;  // 16-byte aligned, as y.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::quantize::cuda

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_QUANTIZE_CUDA_H_

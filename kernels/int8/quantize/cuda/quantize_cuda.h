// int8.quantize on CUDA devices: four channels of four pixels a thread.
//
// Also to pixels that are further apart than they have channels (Placement::pixel_bytes, such as 4 for the 3 channels
// of an image): what lies between gets the zero point. Other placements are declined.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_QUANTIZE_CUDA_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_QUANTIZE_CUDA_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/for_each.h"
#include "kernels/int8/quantize/quantize_params.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::quantize::cuda {

struct LaunchParams {
  quantize::Params quantize;
  fuselage::cuda::Quantizer quantizer = {};
  fuselage::cuda::Items items;                 // [images][code_groups][pixel_groups]
  uint32_t pixel_groups = 0, code_groups = 0;  // An image's groups of four pixels, a pixel's of four codes.
  fuselage::cuda::Divider by_pixel_groups = {}, by_code_groups = {};
  int32_t pixel_bytes = 1;   // From pixel to pixel of y.
  const float* x = nullptr;  // 16-byte aligned, as y.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::quantize::cuda

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_CUDA_QUANTIZE_CUDA_H_

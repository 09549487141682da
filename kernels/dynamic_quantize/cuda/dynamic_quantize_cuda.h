// dynamic_quantize_symmetric on CUDA devices: a warp finds the scale of a group of values, then quantizes them.
//
// Declines (Unimplemented): what is not f32; 2^31 groups or more. A group that is not finite has that as its scale,
// where the CPU's run is an error.
#ifndef FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_CUDA_DYNAMIC_QUANTIZE_CUDA_H_
#define FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_CUDA_DYNAMIC_QUANTIZE_CUDA_H_

#include <cstdint>

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::dynamic_quantize::cuda {

// Groups as dynamic_quantize::Groups has them.
struct LaunchParams {
  int32_t groups = 0;
  int32_t segments = 0;
  int64_t length = 0;
  const int64_t *offsets = nullptr, *starts = nullptr;  // [groups], [segments]
  const float* x = nullptr;
  uint8_t* codes = nullptr;
  float* scales = nullptr;  // [groups]
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::dynamic_quantize::cuda

#endif  // FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_CUDA_DYNAMIC_QUANTIZE_CUDA_H_

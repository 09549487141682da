// "to" between f32 and f16 on CUDA devices, half to even: what stands at the borders of a network in half precision.
// Four elements a thread.
#ifndef FUSELAGE_KERNELS_CAST_CUDA_CAST_CUDA_H_
#define FUSELAGE_KERNELS_CAST_CUDA_CAST_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::cast::cuda {

struct LaunchParams {
  fuselage::cuda::Items items;
  int64_t elements = 0;
  bool to_half = false;     // Or to float.
  const void* x = nullptr;  // Aligned to 16 bytes, as y.
  void* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::cast::cuda

#endif  // FUSELAGE_KERNELS_CAST_CUDA_CAST_CUDA_H_

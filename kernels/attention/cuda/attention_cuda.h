// scaled_dot_product_attention of f32 on CUDA devices, to the CPU's bits (kernels/attention).
#ifndef FUSELAGE_KERNELS_ATTENTION_CUDA_ATTENTION_CUDA_H_
#define FUSELAGE_KERNELS_ATTENTION_CUDA_ATTENTION_CUDA_H_

#include "kernels/attention/cuda/row_shape.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::attention::cuda {

struct LaunchParams {
  RowShape shape;
  float scale = 1;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::attention::cuda

#endif  // FUSELAGE_KERNELS_ATTENTION_CUDA_ATTENTION_CUDA_H_

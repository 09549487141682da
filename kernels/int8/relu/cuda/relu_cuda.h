// int8.relu on CUDA devices: sixteen codes a thread.
#ifndef FUSELAGE_KERNELS_INT8_RELU_CUDA_RELU_CUDA_H_
#define FUSELAGE_KERNELS_INT8_RELU_CUDA_RELU_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"
#include "kernels/int8/relu/relu_params.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::relu::cuda {

struct LaunchParams {
  relu::Params relu;
  fuselage::cuda::Items items;  // 16 codes each.
  int64_t codes = 0;
  const uint8_t* x = nullptr;  // 16-byte aligned, as y.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::relu::cuda

#endif  // FUSELAGE_KERNELS_INT8_RELU_CUDA_RELU_CUDA_H_

// int8.add on CUDA devices: sixteen codes a thread.
#ifndef FUSELAGE_KERNELS_INT8_ADD_CUDA_ADD_CUDA_H_
#define FUSELAGE_KERNELS_INT8_ADD_CUDA_ADD_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"
#include "kernels/int8/add/add_params.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::add::cuda {

struct LaunchParams {
  add::Params add;
  fuselage::cuda::Items items;  // 16 codes each.
  int64_t codes = 0;
  int64_t period_a = 0, period_b = 0;        // Codes of the operands, which repeat.
  const uint8_t *a = nullptr, *b = nullptr;  // 16-byte aligned, as y.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::add::cuda

#endif  // FUSELAGE_KERNELS_INT8_ADD_CUDA_ADD_CUDA_H_

// int8.add on CUDA devices: sixteen codes a thread.
//
// Declines (Unimplemented) 2^31 codes or more where an operand is smaller than the result.
#ifndef FUSELAGE_KERNELS_INT8_ADD_CUDA_ADD_CUDA_H_
#define FUSELAGE_KERNELS_INT8_ADD_CUDA_ADD_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"
#include "kernels/cuda/operand.h"
#include "kernels/int8/add/add_params.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::add::cuda {

struct LaunchParams {
  add::Params add;
  fuselage::cuda::Items items;  // 16 codes each.
  int64_t codes = 0;            // Below 2^31 unless both operands are whole.
  fuselage::cuda::Operand a, b;
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::add::cuda

#endif  // FUSELAGE_KERNELS_INT8_ADD_CUDA_ADD_CUDA_H_

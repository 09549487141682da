// int8.fused_elementwise, int8.mul, int8.sigmoid, ... on CUDA devices: whatever the steps, a function of one or two
// codes is a table, which the CPU's kernel fills. Sixteen codes a thread.
//
// Declines (Unimplemented): more than two operands; 2^31 codes or more.
#ifndef FUSELAGE_KERNELS_FUSED_ELEMENTWISE_CUDA_FUSED_ELEMENTWISE_CUDA_H_
#define FUSELAGE_KERNELS_FUSED_ELEMENTWISE_CUDA_FUSED_ELEMENTWISE_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::fused_elementwise::cuda {

constexpr int kMostOperands = 2;
constexpr int kMostAxes = 8;

struct LaunchParams {
  // Where an operand's code for a code of the result lies.
  struct Operand {
    bool whole = true;  // At the same place. Otherwise by the axes of the result, the innermost first:
    bool rows = false;  // The innermost has a multiple of 16 codes.
    int axes = 0;
    struct Axis {
      uint32_t size;
      int64_t stride;
    } axis[kMostAxes] = {};
    const uint8_t* x = nullptr;  // 16-byte aligned, as y.
  };
  Operand operands[kMostOperands];
  int num_operands = 1;
  fuselage::cuda::Items items;     // 16 codes each.
  uint32_t codes = 0;              // Below 2^31.
  const uint8_t* table = nullptr;  // [256], or [256][256] by the first operand's code, then the second's; bytes.
  uint8_t* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::fused_elementwise::cuda

#endif  // FUSELAGE_KERNELS_FUSED_ELEMENTWISE_CUDA_FUSED_ELEMENTWISE_CUDA_H_

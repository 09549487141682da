// int8.attention on CUDA devices, to the CPU's bits (kernels/int8/attention), on tensor cores.
#ifndef FUSELAGE_KERNELS_INT8_ATTENTION_CUDA_ATTENTION_CUDA_H_
#define FUSELAGE_KERNELS_INT8_ATTENTION_CUDA_ATTENTION_CUDA_H_

#include "kernels/attention/cuda/row_shape.h"
#include "kernels/cuda/codes.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::attention::cuda {

constexpr int kRowsOfABlock = 64, kElementsOfABlock = 128;

struct LaunchParams {
  fuselage::attention::cuda::RowShape shape;
  int32_t row_blocks = 0;  // Of a group.
  float score_multiplier = 1, value_multiplier = 1;
  struct Operand {
    const uint8_t* codes = nullptr;  // 16-byte aligned.
    const uint8_t* end = nullptr;
    uint8_t flip = 0;        // Turns the bytes into i8: beyond the depth, or the keys, it is 0 where it is multiplied.
    int32_t zero_point = 0;  // Of the i8.
  } q, k, v;
  // -q.zero_point, or half of it where that is no i8.
  int8_t q_addend = 0;
  bool q_addend_twice = false;
  fuselage::cuda::Output y;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::attention::cuda

#endif  // FUSELAGE_KERNELS_INT8_ATTENTION_CUDA_ATTENTION_CUDA_H_

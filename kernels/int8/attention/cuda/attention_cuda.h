// int8.attention on CUDA devices, to the CPU's bits (kernels/int8/attention). Codes are multiplied as i8, u8 codes less
// 128, and zero points subtracted from the sums, modulo 2^32.
#ifndef FUSELAGE_KERNELS_INT8_ATTENTION_CUDA_ATTENTION_CUDA_H_
#define FUSELAGE_KERNELS_INT8_ATTENTION_CUDA_ATTENTION_CUDA_H_

#include "kernels/attention/cuda/row_shape.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::attention::cuda {

struct LaunchParams {
  fuselage::attention::cuda::RowShape shape;
  float score_multiplier = 1, value_multiplier = 1;
  // Codes; `flip` turns the bytes into i8, of which the zero points are.
  struct Operand {
    const uint8_t* codes = nullptr;
    uint8_t flip = 0;
    int32_t zero_point = 0;
  } q, k, v;
  // Floats; or codes, by a zero point of their unsigned form.
  bool float_output = false;
  uint8_t flip = 0;
  int32_t zero_point = 0;
  void* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::attention::cuda

#endif  // FUSELAGE_KERNELS_INT8_ATTENTION_CUDA_ATTENTION_CUDA_H_

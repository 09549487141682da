// int8.matmul on CUDA devices, to the CPU's bits: four columns of a row a thread.
//
// Declines what the CPU's kernel declines, and 2^31 such fours or more.
#ifndef FUSELAGE_KERNELS_INT8_MATMUL_CUDA_MATMUL_CUDA_H_
#define FUSELAGE_KERNELS_INT8_MATMUL_CUDA_MATMUL_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::matmul::cuda {

struct LaunchParams {
  fuselage::cuda::Items items;  // [products][rows][column fours]
  uint32_t rows = 0, columns = 0, fours = 0;
  int32_t depth = 0;
  struct Operand {
    const uint8_t* codes = nullptr;     // [matrices][rows or depth][depth or columns]
    const int64_t* matrices = nullptr;  // [products]: which one it is.
    uint8_t flip = 0;                   // To u8, of which the zero point is.
    int32_t zero_point = 0;
  } a, b;
  float multiplier = 1;
  // Floats; or codes, by a zero point of their unsigned form.
  bool float_output = false;
  uint8_t flip = 0;
  int32_t zero_point = 0;
  void* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::matmul::cuda

#endif  // FUSELAGE_KERNELS_INT8_MATMUL_CUDA_MATMUL_CUDA_H_

// int8.matmul on CUDA devices, to the CPU's bits, on tensor cores.
//
// Declines what the CPU's kernel declines, and 2^31 blocks or more.
#ifndef FUSELAGE_KERNELS_INT8_MATMUL_CUDA_MATMUL_CUDA_H_
#define FUSELAGE_KERNELS_INT8_MATMUL_CUDA_MATMUL_CUDA_H_

#include <cstdint>

#include "kernels/cuda/codes.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::matmul::cuda {

// y = a * b, [products][rows][columns], in blocks of rows and columns.
struct LaunchParams {
  int32_t rows = 0, columns = 0, depth = 0;
  int32_t column_blocks = 0, product_blocks = 0;  // Of a row of blocks; of a product.
  struct Operand {
    const uint8_t* codes = nullptr;     // [matrices][rows or depth][depth or columns], 16-byte aligned.
    const uint8_t* end = nullptr;       // Of all matrices.
    const int64_t* matrices = nullptr;  // [products]: which one it is.
    uint8_t padding = 0;                // The code beyond the depth, which is 0 where it is multiplied.
    int32_t zero_point = 0;
  } a, b;
  bool a_is_signed = false;
  uint8_t b_flip = 0;  // Turns b's bytes into i8, of which its zero point is.
  float multiplier = 1;
  fuselage::cuda::Output y;
};

constexpr int kColumnsOfABlock = 64;
constexpr int RowsOfABlock(bool wide) { return wide ? 128 : 64; }

void Launch(const LaunchParams& params, bool wide, int blocks, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::matmul::cuda

#endif  // FUSELAGE_KERNELS_INT8_MATMUL_CUDA_MATMUL_CUDA_H_

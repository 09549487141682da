// index_select on CUDA devices: up to 16 bytes a thread.
//
// Declines (Unimplemented): 2^31 such words or more. A position beyond its axis, which is an error of the CPU's run,
// gives bytes of all ones: NaN as floats.
#ifndef FUSELAGE_KERNELS_INDEXING_CUDA_INDEXING_CUDA_H_
#define FUSELAGE_KERNELS_INDEXING_CUDA_INDEXING_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::indexing::cuda {

// y[outer][i][row] = x[outer][positions[i]][row]
struct LaunchParams {
  fuselage::cuda::Items items;  // Words of y.
  int word_bytes = 1;           // 1, 2, 4, 8 or 16.
  uint32_t row_words = 1, count = 0;
  int64_t dim = 0;  // Of the axis.
  bool wide = false;
  const void* positions = nullptr;  // [count], i64 if `wide`, otherwise i32.
  const void* x = nullptr;          // Aligned to words, as y.
  void* y = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::indexing::cuda

#endif  // FUSELAGE_KERNELS_INDEXING_CUDA_INDEXING_CUDA_H_

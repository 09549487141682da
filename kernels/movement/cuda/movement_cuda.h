// The movement operators on CUDA devices: an element a thread, or 16 bytes where rows allow it.
#ifndef FUSELAGE_KERNELS_MOVEMENT_CUDA_MOVEMENT_CUDA_H_
#define FUSELAGE_KERNELS_MOVEMENT_CUDA_MOVEMENT_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::movement::cuda {

constexpr int kMostAxes = 8;

// One StridedCopy.
struct LaunchParams {
  fuselage::cuda::Items items;  // Words.
  int word_bytes = 1;           // 1, 2, 4, 8 or 16.
  int axes = 0;
  struct Axis {
    uint32_t size;
    int64_t from, to;             // Strides in words.
  } axis[kMostAxes] = {};         // The innermost first.
  const uint8_t* from = nullptr;  // Aligned to words, as `to`.
  uint8_t* to = nullptr;
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::movement::cuda

#endif  // FUSELAGE_KERNELS_MOVEMENT_CUDA_MOVEMENT_CUDA_H_

// int8.linear_groups on CUDA devices, to the CPU's bits: 32 features are the depth of one product of tensor cores, and
// the sums of a group's products then are added up in float32. Weights stay at four bits in memory.
//
// Declines what the CPU's kernel declines; weights that are neither MXFP4 nor INT4; 2^31 rows or more, and 524,281
// channels or more.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_CUDA_LINEAR_GROUPS_CUDA_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_CUDA_LINEAR_GROUPS_CUDA_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::linear_groups::cuda {

constexpr int kTileChannels = 8;

struct LaunchParams {
  int32_t rows = 0, channels = 0, depth = 0, groups = 0;
  int32_t units = 1;  // Of 32 features, of a group.
  // [channel tiles][groups][units][8][4]: of a channel and a quarter t, the codes of features 4 t ... 4 t + 3 and of
  // those 16 behind them, four bits each, the first in the lowest. Of INT4 they are without the group's least.
  const uint32_t* weight = nullptr;
  const void* scale = nullptr;     // [channel tiles][groups][8]: uint8_t, E8M0 of w; of INT4 float.
  const int8_t* least = nullptr;   // The same of INT4, or null: -8.
  const float* bias = nullptr;     // [channel tiles][8]
  const uint8_t* x = nullptr;      // [rows][depth], i8.
  const float* x_scale = nullptr;  // [rows]
  float* y = nullptr;              // [rows][channels]
  bool int4 = false;               // Otherwise MXFP4.
  bool relu = false;
  bool activated = false;  // By a function.
  ElementwiseInstruction function = {};
};

void Launch(const LaunchParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::linear_groups::cuda

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_GROUPS_CUDA_LINEAR_GROUPS_CUDA_H_

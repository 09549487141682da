// int8.linear on CUDA devices: its own product on tensor cores; large ones by cuBLASLt between two kernels of ours.
#ifndef FUSELAGE_KERNELS_INT8_LINEAR_CUDA_LINEAR_CUDA_H_
#define FUSELAGE_KERNELS_INT8_LINEAR_CUDA_LINEAR_CUDA_H_

#include <cstdint>

#include "kernels/cuda/for_each.h"
#include "kernels/int8/linear/cuda/layer.h"

namespace fuselage::kernels {
class KernelRegistry;
}

namespace fuselage::int8::linear::cuda {

// y = act(x * w + bias) by blocks of rows and channels; the warps of a block share out k.
struct LaunchParams {
  Layer layer;
  int32_t rows = 0;
  bool x_is_signed = false;
  bool wide = false;           // Blocks of 64 rows and 32 channels; otherwise 16 and 8.
  const uint8_t* x = nullptr;  // [rows][depth], 16-byte aligned.
  void* y = nullptr;
};
void Launch(const LaunchParams& params, void* stream);
// Blocks in x and y; those in y are at most 65535.
int RowBlocks(bool wide, int64_t rows);
int ChannelBlocks(bool wide, int64_t channels);

// y[row][k] = x[row][k] ^ flip as far as `depth`, zeros as far as `pitch`: codes of either type as i8.
struct PackParams {
  fuselage::cuda::Items items;  // [rows][pitch / 16]
  int32_t depth = 0, pitch = 0;
  uint8_t flip = 0;
  const uint8_t* x = nullptr;  // 16-byte aligned, as y.
  uint8_t* y = nullptr;
};
void LaunchPack(const PackParams& params, void* stream);

// The outputs from [rows][padded_channels] sums.
struct FinishParams {
  Layer layer;
  fuselage::cuda::Items items;  // [rows][channels]
  const int32_t* sums = nullptr;
  void* y = nullptr;
};
void LaunchFinish(const FinishParams& params, void* stream);

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::linear::cuda

#endif  // FUSELAGE_KERNELS_INT8_LINEAR_CUDA_LINEAR_CUDA_H_

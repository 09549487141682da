// Names of the compiled kernels: what the plan chooses, and what launching and emulation look up.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNEL_ID_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNEL_ID_H_

#include <array>

#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

enum class Family { kGemm, kReduce, kStem, kPooledStem, kDirect, kPool };

// Sizes of a Gemm's tiles, the same as in WithKernel.
struct TileSize {
  int rows, columns, warps;
};
constexpr TileSize kTiles[] = {{128, 128, 8}, {128, 64, 4}, {64, 64, 4}, {32, 64, 4}};
constexpr int kTileCount = 4;
// Of the Gemm whose input has rows that are not whole 16-byte pieces.
constexpr int kUnalignedTile = 2;

struct KernelId {
  Family family = Family::kDirect;
  bool is_signed = false;  // i8 input. False for kReduce and kPool.
  int tile = 0;            // In kTiles; of a Gemm.
  bool aligned = true;     // in_channels is a multiple of 16; of a Gemm.
};

// One launch. `shared_bytes` is dynamic shared memory.
struct Launch {
  KernelId id;
  std::array<int, 3> grid;
  int shared_bytes = 0;
  Params params;
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNEL_ID_H_

// Names of the compiled kernels: what the plan chooses, and what launching and emulation look up.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNEL_ID_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNEL_ID_H_

#include <array>

#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

enum class Family { kGemm, kFinish, kStem, kPooledStem, kDepthwise, kDirect, kPool };

// A Gemm's tiles. Shared memory feeds mma on sm_90 only where warps have 64 x 64 results: then each byte that ldmatrix
// takes is used often enough. The smaller tiles are for products that leave multiprocessors idle, teams for those of
// the fewest.
struct TileSize {
  int rows, columns, warps_down, warps_across;
  bool halo = false;    // The kernel is halo.h's.
  bool hopper = false;  // Of sm_90a; Tile::kHopper.
  int teams = 1;        // Tile::kTeams, of a ShortGemm.

  constexpr int warps() const { return teams * warps_down * warps_across; }
};
constexpr TileSize kTiles[] = {{128, 128, 2, 2},
                               {256, 64, 4, 1},
                               {128, 64, 2, 2},
                               {64, 64, 2, 2},
                               {32, 64, 1, 4},
                               {256, 64, 4, 1, /*halo=*/true},
                               {32, 32, 2, 2, false, false, /*teams=*/4},
                               {32, 64, 1, 4, false, false, /*teams=*/4},
                               {128, 128, 8, 1, true, /*hopper=*/true},
                               {128, 64, 4, 1, true, true},
                               {128, 128, 8, 1, false, true},
                               {128, 64, 4, 1, false, true}};
constexpr int kTileCount = 12;
constexpr int kHaloTile = 5, kLeastTile = 6;  // It and the next one have teams.
constexpr int kFirstHopperTile = 8;  // It and all that follow.
// A patch of a halo: as many pixels as every device since sm_80 has shared memory for, 99 KiB on the least of them.
constexpr int kMostPatchPixels = 656;
// Of the Gemm whose input's pixels are not whole 16-byte pieces.
constexpr int kUnalignedTile = 3;
// Of the Gemm of small groups; and columns of all tiles that convolutions of several groups have.
constexpr int kDiagonalTile = 3, kGroupColumns = 64;

// Of a PooledStem: those of the most convolutions, and the most that registers have room for.
constexpr int kFewTapRows = 3, kMostTapRows = 7;

struct KernelId {
  Family family = Family::kDirect;
  bool is_signed = false;        // i8 input. False for kFinish, kPool and kPooledStem.
  int tile = 0;                  // In kTiles; of a Gemm.
  bool diagonal = false;         // Of small groups; of a Gemm of whole pieces.
  int tap_rows = 0, stride = 0;  // Of a PooledStem.
  int piece = 16;  // Bytes of the input that are fetched at once, which divide a pixel: 16, 8 or 1 of a Gemm, 16 or 4
                   // of a Depthwise.
};

// One launch. `shared_bytes` is dynamic shared memory.
struct Launch {
  KernelId id;
  std::array<int, 3> grid;
  int shared_bytes = 0;
  Params params;

  bool clusters() const { return params.share_bits > 0; }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNEL_ID_H_

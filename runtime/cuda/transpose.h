// Transpose: for each of a batch of matrices to[c][r] = from[r][c], as a CUDA kernel (see kernels/cuda/block.h).
#ifndef FUSELAGE_RUNTIME_CUDA_TRANSPOSE_H_
#define FUSELAGE_RUNTIME_CUDA_TRANSPOSE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/block.h"

namespace fuselage::runtime::cuda {

// A block moves a tile through shared memory: it is read by rows and written by columns, both coalesced.
template <typename T>
struct TransposeTiles {
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = 4;
  static constexpr int kTile = fuselage::cuda::kWarpSize;
  // In shared memory an element takes two bytes at least, and a row one element more than a tile has, so that a column
  // lies in different banks.
  using Slot = std::conditional_t<sizeof(T) == 1, uint16_t, T>;
  static constexpr int kSharedBytes = kTile * (kTile + 1) * sizeof(Slot);

  struct Params {
    int64_t rows, columns;
    const T* from;
    T* to;
  };

  static constexpr int64_t Tiles(int64_t size) { return (size + kTile - 1) / kTile; }
  // In x.
  static constexpr int64_t Blocks(int64_t batch, int64_t rows, int64_t columns) {
    return batch * Tiles(rows) * Tiles(columns);
  }

  FUSELAGE_DEVICE static uint32_t OffsetOf(int row, int column) { return (row * (kTile + 1) + column) * sizeof(Slot); }

  FUSELAGE_DEVICE static void Run(fuselage::cuda::Block& block, const Params& params) {
    using fuselage::cuda::Thread;
    using fuselage::cuda::Warp;
    const int64_t column_tiles = (params.columns + kTile - 1) / kTile, row_tiles = (params.rows + kTile - 1) / kTile;
    const int64_t column = block.x() % column_tiles * kTile;
    const int64_t row = block.x() / column_tiles % row_tiles * kTile;
    const int64_t matrix = block.x() / column_tiles / row_tiles * params.rows * params.columns;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int c = thread.lane();
        for (int r = warp.index(); r < kTile; r += kWarps) {
          if (row + r >= params.rows || column + c >= params.columns) continue;
          const T* from = params.from + matrix + (row + r) * params.columns + column + c;
          thread.template StoreShared<Slot>(OffsetOf(r, c), thread.Load(from));
        }
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int r = thread.lane();
        for (int c = warp.index(); c < kTile; c += kWarps) {
          if (row + r >= params.rows || column + c >= params.columns) continue;
          const T value = static_cast<T>(thread.template LoadShared<Slot>(OffsetOf(r, c)));
          thread.Store(params.to + matrix + (column + c) * params.rows + row + r, value);
        }
      });
    });
  }
};

}  // namespace fuselage::runtime::cuda

#endif  // FUSELAGE_RUNTIME_CUDA_TRANSPOSE_H_

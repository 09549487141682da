// Implicit GEMM of few steps, where products are so small that a block is little else than what it waits for: shared
// memory has room for all operands of a block at once. Its weights, its padding and the addresses of its pixels are
// there before it waits for earlier launches; then it starts to copy all pixels, and between their arrival and the last
// product is no barrier. Its warps are teams (teams.h), each of which fetches and multiplies every kTeams-th step.
//
// The grid is that of Gemm.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_SHORT_GEMM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_SHORT_GEMM_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/steps.h"
#include "kernels/int8/conv2d/cuda/teams.h"

namespace fuselage::int8::conv2d::cuda {

// X: uint8_t or int8_t, the input's codes. Pixels and tap_channels are whole pieces of 16 bytes.
template <typename TileOfBlock, typename X>
struct ShortGemm {
  using Params = cuda::Params;
  using Tile = TileOfBlock;
  using Steps = cuda::Steps<Tile, X, /*kDiagonal=*/false>;
  using Teams = cuda::Teams<Tile>;
  static constexpr int kTeams = Teams::kTeams, kWarps = Teams::kWarps;
  static constexpr int kBlocks = 2;
  static constexpr bool kWaits = true;
  static constexpr int kTurns = kMostShortSteps / kTeams;  // A team's steps.
  static constexpr int kStageBytes = (Tile::kRows + Tile::kColumns) * kStep;
  // The sums take the place of the operands; what a block's cluster stores there lies behind both.
  FUSELAGE_HOST_DEVICE static constexpr int ClusterPlace(int steps) {
    return steps * kStageBytes > Teams::kBytes ? steps * kStageBytes : Teams::kBytes;
  }
  static constexpr int PatchBytes(int) { return 0; }
  static constexpr int SharedBytes(bool, int, int steps) { return ClusterPlace(steps) + Teams::kClusterBytes; }
  // A thread fetches a piece of a row of pixels in each of its team's steps.
  static_assert(Tile::kThreads == Tile::kRows * Steps::kPieces && kMostShortSteps % kTeams == 0);

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int column_tiles = p.padded_channels / Tile::kColumns;
    const int first_row = block.x() / column_tiles * Tile::kRows;
    const int first_channel = block.x() % column_tiles * Tile::kColumns;
    const int first_step = block.z() * p.steps_per_split;
    const int steps = first_step + p.steps_per_split < p.steps ? p.steps_per_split : p.steps - first_step;
    const auto cluster = static_cast<uint32_t>(ClusterPlace(p.steps_per_split));
    PerThread<Pixels, kWarps> pixels;
    PerThread<typename Teams::Operands, kWarps> operands;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;
    // Does the block have the step of a warp's team in that turn?
    const auto has = [&](Warp warp, int turn) { return turn * kTeams + Teams::Of(warp) < steps; };

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int8_t* weights = Steps::Weights(p, thread, first_step + Teams::Of(warp), first_channel);
        FUSELAGE_UNROLL
        for (int turn = 0; turn < kTurns; ++turn) {
          if (!has(warp, turn)) break;
          Steps::FetchWeights(thread, weights, StageOf(warp, turn) + Tile::kRows * kStep);
          weights += int64_t{kTeams} * p.padded_channels * kStep;
        }
        Find(p, warp, thread, first_row, first_channel, first_step, has, pixels[thread]);
        accumulators[warp].Clear(thread);
        operands[thread].LoadConstants(p, thread, {p, thread, first_row, first_channel});
      });
      Teams::Begin(p, warp, cluster);
      warp.WaitForEarlier();
      warp.ForThreads([&](Thread thread) {
        const Pixels& own = pixels[thread];
        FUSELAGE_UNROLL
        for (int turn = 0; turn < kTurns; ++turn) {
          if (own.are_there >> turn & 1) thread.CopyAsync<16>(PlaceOf(warp, thread, turn), own.from[turn]);
        }
        // They are waited for where they are used.
        operands[thread].LoadResiduals(p, thread, {p, thread, first_row, first_channel});
      });
      warp.CommitCopies();
      warp.template WaitForCopies<0>();
    });
    block.Phase([&](Warp warp) {
      FUSELAGE_UNROLL
      for (int turn = 0; turn < kTurns; ++turn) {
        if (!has(warp, turn)) break;
        const auto place = [&](Thread thread, int i, int half) {
          return StageOf(warp, turn) +
                 Steps::Place(Tile::Row(warp) + thread.lane() % 16, thread.lane() / 16 ^ 2 * half) +
                 Tile::kFragmentRows * i * kStep;
        };
        Steps::Multiply(warp, place, StageOf(warp, turn) + Tile::kRows * kStep, /*adds=*/true, accumulators[warp],
                        [] {});
      }
    });
    Teams::Store(block, p, first_row, first_channel, cluster, accumulators, operands);
  }

 private:
  // Where a thread's pieces of pixels are, and a bit for each of those that are inside of the image.
  struct Pixels {
    const uint8_t* from[kTurns];
    uint32_t are_there;
  };

  // Also stores the padding.
  template <typename Has>
  FUSELAGE_DEVICE static void Find(const Params& p, Warp warp, Thread thread, int first_row, int first_channel,
                                   int first_step, Has has, Pixels& pixels) {
    const int index = Tile::IndexOf(thread), row = first_row + index / Steps::kPieces;
    const auto line = static_cast<int>(p.by_out_width.Divide(row));
    const auto image = static_cast<int>(p.by_out_height.Divide(line));
    const int y = (line - image * p.out_height) * p.stride_y - p.pad_top;
    const int x = (row - line * p.out_width) * p.stride_x - p.pad_left;
    // Modulo 2^32, as the pieces' distances are.
    const uint32_t first = ((static_cast<uint32_t>(image * p.in_height) + y) * p.in_width + x) * p.in_channels +
                           p.window.First(first_channel);
    // Loads that do not wait for each other.
    Piece pieces[kTurns];
    FUSELAGE_UNROLL
    for (int turn = 0; turn < kTurns; ++turn) {
      const int step = first_step + Teams::Of(warp) + turn * kTeams;
      pieces[turn] = thread.LoadConstant(p.pieces + step * Steps::kPieces + index % Steps::kPieces);
    }
    pixels.are_there = 0;
    FUSELAGE_UNROLL
    for (int turn = 0; turn < kTurns; ++turn) {
      if (!has(warp, turn)) break;
      const Piece& piece = pieces[turn];
      // Taps past the last meet weights of zero.
      const bool inside = row < p.rows && static_cast<unsigned>(y + piece.tap_y) < static_cast<unsigned>(p.in_height) &&
                          static_cast<unsigned>(x + piece.tap_x) < static_cast<unsigned>(p.in_width);
      pixels.from[turn] = p.input + (first + piece.distance);
      if (inside) {
        pixels.are_there |= 1u << turn;
      } else {
        thread.StoreShared(PlaceOf(warp, thread, turn), Padding<16>(p.padding));
      }
    }
  }

  FUSELAGE_DEVICE static uint32_t StageOf(Warp warp, int turn) {
    return (turn * kTeams + Teams::Of(warp)) * kStageBytes;
  }
  FUSELAGE_DEVICE static uint32_t PlaceOf(Warp warp, Thread thread, int turn) {
    const int index = Tile::IndexOf(thread);
    return StageOf(warp, turn) + Steps::Place(index / Steps::kPieces, index % Steps::kPieces);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_SHORT_GEMM_H_

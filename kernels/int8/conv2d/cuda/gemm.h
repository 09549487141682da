// Implicit GEMM: rows are output pixels, columns output channels, the inner dimension runs over taps and channels.
//
// A block computes one tile, in steps (steps.h) that go through kStages buffers of shared memory: copies fill them
// kStages - 1 steps ahead, cp.async those of pixels, and for Hopper one thread's bulk copies those of weights. Pixels
// outside the image are Params::padding. The grid is [row tiles * column tiles, 1, splits of the inner dimension], with
// the blocks of the same pixels next to each other: what the first fetches the others find in the L2 cache.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_GEMM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_GEMM_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/steps.h"
#include "kernels/int8/conv2d/cuda/teams.h"

namespace fuselage::int8::conv2d::cuda {

// X: uint8_t or int8_t, the input's codes. kPiece: bytes of the input that are fetched at once, in_channels is a
// multiple of it; 1 is slow. kDiagonal: groups of as many inputs as outputs, of which 32 channels are whole ones; a
// tile's window has the channels of its columns, the last tile's more than there are.
template <typename TileOfBlock, typename X, int kPiece, bool kDiagonal = false>
struct Gemm {
  using Params = cuda::Params;
  using Tile = TileOfBlock;
  using Steps = cuda::Steps<Tile, X, kDiagonal>;
  using Teams = cuda::Teams<Tile>;
  static constexpr int kTeams = Teams::kTeams, kWarps = Teams::kWarps;
  static constexpr int kBlocks = Tile::kBlocks < kTeams ? 1 : Tile::kBlocks / kTeams;
  static constexpr bool kWaits = true;
  static constexpr int kStages = Tile::kRows * Tile::kColumns < 128 * 128 ? 4 : 3;
  static constexpr int kStageBytes = (Tile::kRows + Tile::kColumns) * kStep;
  static constexpr int kBarrierBytes = Tile::kHopper ? 512 : 0;  // For Hopper: of each buffer's weights.
  // The results take the place of the buffers. A residual is fetched meanwhile, to its own place.
  static constexpr int kSharedBytes = kBarrierBytes + kTeams * kStages * kStageBytes;
  static constexpr int PatchBytes(int) { return 0; }
  static constexpr int SharedBytes(bool residual, int) {
    return kSharedBytes + (residual && kTeams == 1 ? Tile::kStagingBytes : 0);
  }
  static_assert(kTeams > 1 ? kSharedBytes >= Teams::kBytes
                           : kSharedBytes >= Tile::kStagingBytes && kSharedBytes >= Tile::kSumsEnd);

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int column_tiles = p.padded_channels / Tile::kColumns;
    const int first_row = block.x() / column_tiles * Tile::kRows;
    const int first_channel = block.x() % column_tiles * Tile::kColumns;
    const int first_step = block.z() * p.steps_per_split;
    const int steps = first_step + p.steps_per_split < p.steps ? p.steps_per_split : p.steps - first_step;
    const auto pixel = [&](int row) { return int64_t{first_row + row < p.rows ? first_row + row : -1}; };
    const uint32_t staging = p.residual == nullptr ? kBarrierBytes : kSharedBytes;
    PerThread<Cursor, kWarps> cursors;
    PerThread<typename Teams::Output, kWarps> outputs;  // Of several teams.
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;
    // Has a warp's team so many steps?
    const auto has = [&](Warp warp, int step) { return step * kTeams + Teams::Of(warp) < steps; };
    // Of a team's n-th step.
    const auto fetch_weights = [&](Warp warp, Thread thread, int n) {
      const uint32_t to = StageOf(warp, n) + Tile::kRows * kStep;
      if constexpr (Tile::kHopper) {
        if (thread.index() > 0) return;
        thread.ExpectBytes(Barrier(n), Steps::kWeightBytes);
        Steps::StartWeights(p, thread, first_step + n, first_channel, to, Barrier(n));
      } else {
        Steps::FetchWeights(thread, cursors[thread].weight, to);
        cursors[thread].weight += int64_t{kTeams} * p.padded_channels * kStep;
      }
    };

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        cursors[thread] = MakeCursor(p, thread, first_row, first_channel, first_step + Teams::Of(warp));
        accumulators[warp].Clear(thread);
        if constexpr (kTeams > 1) outputs[thread] = typename Teams::Output(p, thread, first_row, first_channel);
        // The weights of the first steps do not wait for earlier launches.
        if constexpr (Tile::kHopper) {
          if (thread.index() == 0) thread.InitBarriers(Barrier(0), kStages);
        }
        FUSELAGE_UNROLL
        for (int step = 0; step < kStages - 1; ++step) {
          if (has(warp, step)) fetch_weights(warp, thread, step);
        }
      });
      warp.WaitForEarlier();
      if constexpr (kTeams > 1) {
        warp.ForThreads([&](Thread thread) { outputs[thread].LoadResiduals(p, thread); });
      } else if (p.residual != nullptr && p.sums == nullptr) {
        warp.ForThreads([&](Thread thread) { FetchResidual<Tile>(p, thread, staging, first_channel, pixel); });
      }
      FUSELAGE_UNROLL
      for (int step = 0; step < kStages - 1; ++step) {
        if (has(warp, step)) {
          warp.ForThreads([&](Thread thread) { FetchRows(p, thread, StageOf(warp, step), cursors[thread]); });
        }
        warp.CommitCopies();
      }
      warp.template WaitForCopies<kStages - 2>();
    });
    for (int step = 0; step * kTeams < steps; ++step) {
      // The buffer that is filled is the one that was emptied before the last barrier.
      block.Phase([&](Warp warp) {
        const auto fetch = [&] {
          const int ahead = step + kStages - 1;
          if (has(warp, ahead)) {
            warp.ForThreads([&](Thread thread) {
              fetch_weights(warp, thread, ahead);
              FetchRows(p, thread, StageOf(warp, ahead), cursors[thread]);
            });
          }
          warp.CommitCopies();
        };
        if constexpr (Tile::kHopper) warp.WaitForBytes(Barrier(step), step / kStages % 2);
        if (has(warp, step)) {
          Multiply(warp, StageOf(warp, step), accumulators[warp], fetch);
        } else {
          fetch();
        }
        warp.template WaitForCopies<kStages - 2>();
      });
    }

    if constexpr (kTeams > 1) {
      Teams::Store(block, p, first_channel, accumulators, outputs);
    } else {
      if (p.splits > 1 && !AddSplits<Tile>(block, p, accumulators)) return;
      if (p.sums != nullptr) return StoreSums<Tile>(block, p, first_row, first_channel, accumulators);
      if (p.float_bias != nullptr) return StoreFloats<Tile>(block, p, first_channel, accumulators, pixel);
      StoreCodes<Tile>(block, p, staging, first_channel, accumulators, pixel);
    }
  }

 private:
  // All of a row's channels follow each other, and their pieces are whole.
  static constexpr bool kByRows = kPiece == 16 && !kDiagonal;
  // What a thread fetches in each step: one 16-byte column of kFetchedRows rows of pixels, and pieces of weights.
  static constexpr int kRowsApart = Tile::kThreads / Steps::kPieces;
  static constexpr int kFetchedRows = Tile::kRows / kRowsApart;
  static_assert(Tile::kRows % kRowsApart == 0);

  struct Cursor {
    int image[kFetchedRows];               // Byte offset of its image, and of the window.
    int y[kFetchedRows], x[kFetchedRows];  // Of tap (0, 0), in input pixels.
    const uint8_t* from[kFetchedRows];     // kByRows: of the next step,
    bool inside[kFetchedRows];             // and whether that is in the image.
    int tap_y, tap_x, channel;             // The place in the inner dimension; tap_y may pass the last tap.
    int channels;                          // From the window's first on.
    const int8_t* weight;                  // Of the next step; not for Hopper.
  };

  FUSELAGE_DEVICE static Cursor MakeCursor(const Params& p, Thread thread, int first_row, int first_channel,
                                           int first_step) {
    Cursor c;
    const int first_input = p.window.First(first_channel);
    c.channels = p.in_channels - first_input;
    FUSELAGE_UNROLL
    for (int i = 0; i < kFetchedRows; ++i) {
      const int row = first_row + Tile::IndexOf(thread) / Steps::kPieces + i * kRowsApart;
      const int x = row % p.out_width, line = row / p.out_width;
      c.image[i] = line / p.out_height * (p.in_height * p.in_width * p.in_channels) + first_input;
      c.y[i] = line % p.out_height * p.stride_y - p.pad_top;
      c.x[i] = x * p.stride_x - p.pad_left;
      if (row >= p.rows) c.image[i] = 0, c.y[i] = -(1 << 30);  // Outside of any image.
    }
    const int inner = first_step * kStep + Tile::IndexOf(thread) % Steps::kPieces * 16;
    const int tap = inner / p.tap_channels;
    c.channel = inner % p.tap_channels;
    c.tap_y = tap / p.kernel_width * p.dilation_y;
    c.tap_x = tap % p.kernel_width * p.dilation_x;
    if constexpr (!Tile::kHopper) c.weight = Steps::Weights(p, thread, first_step, first_channel);
    if constexpr (kByRows) Locate(p, c);
    return c;
  }

  FUSELAGE_DEVICE static bool IsInside(const Params& p, const Cursor& c, int i) {
    return static_cast<unsigned>(c.y[i] + c.tap_y) < static_cast<unsigned>(p.in_height) &&
           static_cast<unsigned>(c.x[i] + c.tap_x) < static_cast<unsigned>(p.in_width);
  }
  FUSELAGE_DEVICE static const uint8_t* PixelOf(const Params& p, const Cursor& c, int i) {
    return p.input + (c.image[i] + ((c.y[i] + c.tap_y) * p.in_width + c.x[i] + c.tap_x) * p.in_channels + c.channel);
  }
  // Channels past the last, like taps past the last, meet weights of zero.
  FUSELAGE_DEVICE static void Locate(const Params& p, Cursor& c) {
    FUSELAGE_UNROLL
    for (int i = 0; i < kFetchedRows; ++i) {
      c.inside[i] = IsInside(p, c, i);
      c.from[i] = c.inside[i] ? PixelOf(p, c, i) : p.input;
    }
  }

  // The buffer of a team's n-th step, and the barrier of its weights.
  FUSELAGE_DEVICE static uint32_t StageOf(Warp warp, int n) {
    return kBarrierBytes + (Teams::Of(warp) * kStages + n % kStages) * kStageBytes;
  }
  FUSELAGE_DEVICE static uint32_t Barrier(int n) { return 8 * (n % kStages); }
  static_assert(!Tile::kHopper || kTeams == 1);

  // Fetches the cursor's pixels of a step into its buffer, and moves on to the team's next step.
  FUSELAGE_DEVICE static void FetchRows(const Params& p, Thread thread, uint32_t stage, Cursor& c) {
    FUSELAGE_UNROLL
    for (int i = 0; i < kFetchedRows; ++i) {
      const int row = Tile::IndexOf(thread) / Steps::kPieces + i * kRowsApart;
      const uint32_t to = stage + Steps::Place(row, Tile::IndexOf(thread) % Steps::kPieces);
      if constexpr (kByRows) {
        CopyOrPad<16>(thread, to, c.from[i], c.inside[i], p.padding);
        c.from[i] += kTeams * kStep;
        continue;
      }
      const bool inside = IsInside(p, c, i) && ((kPiece != 8 && !kDiagonal) || c.channel < c.channels);
      const uint8_t* from = inside ? PixelOf(p, c, i) : p.input;
      if constexpr (kPiece == 16) {
        CopyOrPad<16>(thread, to, from, inside, p.padding);
      } else if constexpr (kPiece == 8) {
        CopyOrPad<8>(thread, to, from, inside, p.padding);
        CopyOrPad<8>(thread, to + 8, from + 8, inside && c.channel + 8 < c.channels, p.padding);
      } else {
        Vector<uint8_t, 16> bytes;
        FUSELAGE_UNROLL
        for (int j = 0; j < 16; ++j) {
          bytes.values[j] = p.padding;
          if (inside && c.channel + j < c.channels) bytes.values[j] = thread.Load(from + j);
        }
        thread.StoreShared(to, bytes);
      }
    }
    c.channel += kTeams * kStep;
    if (c.channel < p.tap_channels) return;
    while (c.channel >= p.tap_channels) {
      c.channel -= p.tap_channels;
      c.tap_x += p.dilation_x;
      if (c.tap_x >= p.kernel_width * p.dilation_x) {
        c.tap_x = 0;
        c.tap_y += p.dilation_y;
      }
    }
    if constexpr (kByRows) Locate(p, c);
  }

  template <typename Fetch>
  FUSELAGE_DEVICE static void Multiply(Warp warp, uint32_t stage, typename Tile::Accumulators& accumulators,
                                       Fetch fetch) {
    const auto place = [&](Thread thread, int i, int half) {
      const uint32_t first = stage + Steps::Place(Tile::Row(warp) + thread.lane() % 16, thread.lane() / 16);
      return (first ^ half * 32) + Tile::kFragmentRows * i * kStep;
    };
    Steps::Multiply(warp, place, stage + Tile::kRows * kStep, accumulators, fetch);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_GEMM_H_

// Implicit GEMM: rows are output pixels, columns output channels, the inner dimension runs over taps and channels.
//
// A block computes one tile, in steps (steps.h) that go through kStages buffers of shared memory: cp.async fills them
// kStages - 1 steps ahead. Pixels outside the image come from Params::padding. The grid is [row tiles * column tiles,
// 1, splits of the inner dimension], with the blocks of the same pixels next to each other: what the first fetches the
// others find in the L2 cache.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_GEMM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_GEMM_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/steps.h"

namespace fuselage::int8::conv2d::cuda {

// X: uint8_t or int8_t, the input's codes. kPiece: bytes of the input that are fetched at once, in_channels is a
// multiple of it; 1 is slow. kDiagonal: groups of as many inputs as outputs, of which 32 channels are whole ones; a
// tile's window has the channels of its columns, the last tile's more than there are.
template <typename TileOfBlock, typename X, int kPiece, bool kDiagonal = false>
struct Gemm {
  using Params = cuda::Params;
  using Tile = TileOfBlock;
  using Steps = cuda::Steps<Tile, X, kDiagonal>;
  static constexpr int kWarps = Tile::kWarps;
  static constexpr int kBlocks = Tile::kBlocks;
  static constexpr bool kWaits = true;
  static constexpr int kStages = Tile::kRows * Tile::kColumns < 128 * 128 ? 4 : 3;
  static constexpr int kStageBytes = (Tile::kRows + Tile::kColumns) * kStep;
  // The results take the place of the buffers. A residual is fetched meanwhile, to its own place.
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static constexpr int SharedBytes(bool residual, int) { return kSharedBytes + (residual ? Tile::kStagingBytes : 0); }
  static_assert(kSharedBytes >= Tile::kStagingBytes && kSharedBytes >= Tile::kSumsBytes);

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int column_tiles = p.padded_channels / Tile::kColumns;
    const int first_row = block.x() / column_tiles * Tile::kRows;
    const int first_channel = block.x() % column_tiles * Tile::kColumns;
    const int first_step = block.z() * p.steps_per_split;
    const int steps = first_step + p.steps_per_split < p.steps ? p.steps_per_split : p.steps - first_step;
    const auto pixel = [&](int row) { return int64_t{first_row + row < p.rows ? first_row + row : -1}; };
    const uint32_t staging = p.residual == nullptr ? 0 : kSharedBytes;
    PerThread<Cursor, kWarps> cursors;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        cursors[thread] = MakeCursor(p, thread, first_row, first_channel, first_step);
        accumulators[warp].Clear(thread);
        // The weights of the first steps do not wait for earlier launches.
        FUSELAGE_UNROLL
        for (int step = 0; step < kStages - 1; ++step) {
          if (step < steps) FetchWeights(p, thread, step * kStageBytes, cursors[thread]);
        }
      });
      warp.WaitForEarlier();
      if (p.residual != nullptr && p.sums == nullptr) {
        warp.ForThreads([&](Thread thread) { FetchResidual<Tile>(p, thread, staging, first_channel, pixel); });
      }
      FUSELAGE_UNROLL
      for (int step = 0; step < kStages - 1; ++step) {
        if (step < steps) {
          warp.ForThreads([&](Thread thread) { FetchRows(p, thread, step * kStageBytes, cursors[thread]); });
        }
        warp.CommitCopies();
      }
      warp.template WaitForCopies<kStages - 2>();
    });
    for (int step = 0; step < steps; ++step) {
      // The buffer that is filled is the one that was emptied before the last barrier.
      block.Phase([&](Warp warp) {
        const int ahead = step + kStages - 1;
        if (ahead < steps) {
          warp.ForThreads([&](Thread thread) {
            FetchRows(p, thread, ahead % kStages * kStageBytes, cursors[thread]);
            FetchWeights(p, thread, ahead % kStages * kStageBytes, cursors[thread]);
          });
        }
        warp.CommitCopies();
        Multiply(warp, step % kStages * kStageBytes, accumulators[warp]);
        warp.template WaitForCopies<kStages - 2>();
      });
    }

    if (p.splits > 1 && !AddSplits<Tile>(block, p, accumulators)) return;
    if (p.sums != nullptr) return StoreSums<Tile>(block, p, first_row, first_channel, accumulators);
    if (p.float_bias != nullptr) return StoreFloats<Tile>(block, p, first_channel, accumulators, pixel);
    StoreCodes<Tile>(block, p, staging, first_channel, accumulators, pixel);
  }

 private:
  // What a thread fetches in each step: one 16-byte column of kFetchedRows rows of pixels, and pieces of weights.
  static constexpr int kRowsApart = Tile::kThreads / Steps::kPieces;
  static constexpr int kFetchedRows = Tile::kRows / kRowsApart;
  static_assert(Tile::kRows % kRowsApart == 0);

  struct Cursor {
    int image[kFetchedRows];               // Byte offset of its image, and of the window.
    int y[kFetchedRows], x[kFetchedRows];  // Of tap (0, 0), in input pixels.
    int tap_y, tap_x, channel;             // The place in the inner dimension; tap_y may pass the last tap.
    int channels;                          // From the window's first on.
    const int8_t* weight;
  };

  FUSELAGE_DEVICE static Cursor MakeCursor(const Params& p, Thread thread, int first_row, int first_channel,
                                           int first_step) {
    Cursor c;
    const int first_input = p.window.First(first_channel);
    c.channels = p.in_channels - first_input;
    FUSELAGE_UNROLL
    for (int i = 0; i < kFetchedRows; ++i) {
      const int row = first_row + thread.index() / Steps::kPieces + i * kRowsApart;
      const int x = row % p.out_width, line = row / p.out_width;
      c.image[i] = line / p.out_height * (p.in_height * p.in_width * p.in_channels) + first_input;
      c.y[i] = line % p.out_height * p.stride_y - p.pad_top;
      c.x[i] = x * p.stride_x - p.pad_left;
      if (row >= p.rows) c.image[i] = 0, c.y[i] = -(1 << 30);  // Outside of any image.
    }
    const int inner = first_step * kStep + thread.index() % Steps::kPieces * 16;
    const int tap = inner / p.tap_channels;
    c.channel = inner % p.tap_channels;
    c.tap_y = tap / p.kernel_width * p.dilation_y;
    c.tap_x = tap % p.kernel_width * p.dilation_x;
    c.weight = Steps::Weights(p, thread, first_step, first_channel);
    return c;
  }

  // Fetch the cursor's part of a step into the buffer at `stage`, and move on to the next step.
  FUSELAGE_DEVICE static void FetchWeights(const Params& p, Thread thread, uint32_t stage, Cursor& c) {
    Steps::FetchWeights(thread, c.weight, stage + Tile::kRows * kStep);
    c.weight += int64_t{p.padded_channels} * kStep;
  }
  FUSELAGE_DEVICE static void FetchRows(const Params& p, Thread thread, uint32_t stage, Cursor& c) {
    FUSELAGE_UNROLL
    for (int i = 0; i < kFetchedRows; ++i) {
      const int y = c.y[i] + c.tap_y, x = c.x[i] + c.tap_x;
      const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(p.in_height) &&
                          static_cast<unsigned>(x) < static_cast<unsigned>(p.in_width) &&
                          ((kPiece != 8 && !kDiagonal) || c.channel < c.channels);
      const uint8_t* from =
          inside ? p.input + (c.image[i] + (y * p.in_width + x) * p.in_channels + c.channel) : p.padding;
      const int row = thread.index() / Steps::kPieces + i * kRowsApart;
      const uint32_t to = stage + Steps::Place(row, thread.index() % Steps::kPieces);
      // Channels past the last, like taps past the last, meet weights of zero.
      if constexpr (kPiece == 16) {
        thread.CopyAsync<16>(to, from);
      } else if constexpr (kPiece == 8) {
        thread.CopyAsync<8>(to, from);
        thread.CopyAsync<8>(to + 8, inside && c.channel + 8 >= c.channels ? p.padding : from + 8);
      } else {
        const int channels = inside ? c.channels - c.channel : 16;
        Vector<uint8_t, 16> bytes;
        FUSELAGE_UNROLL
        for (int j = 0; j < 16; ++j) bytes.values[j] = j < channels ? thread.Load(from + j) : uint8_t{0};
        thread.StoreShared(to, bytes);
      }
    }
    c.channel += kStep;
    while (c.channel >= p.tap_channels) {
      c.channel -= p.tap_channels;
      c.tap_x += p.dilation_x;
      if (c.tap_x >= p.kernel_width * p.dilation_x) {
        c.tap_x = 0;
        c.tap_y += p.dilation_y;
      }
    }
  }

  FUSELAGE_DEVICE static void Multiply(Warp warp, uint32_t stage, typename Tile::Accumulators& accumulators) {
    const auto place = [&](Thread thread, int i, int half) {
      const uint32_t first = stage + Steps::Place(Tile::Row(warp) + thread.lane() % 16, thread.lane() / 16);
      return (first ^ half * 32) + 16 * i * kStep;
    };
    Steps::Multiply(warp, place, stage + Tile::kRows * kStep, accumulators);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_GEMM_H_

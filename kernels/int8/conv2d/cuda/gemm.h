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

namespace fuselage::int8::conv2d::cuda {

// X: uint8_t or int8_t, the input's codes. kPiece: bytes of the input that are fetched at once, in_channels is a
// multiple of it; 1 is slow. kDiagonal: groups of as many inputs as outputs, of which 32 channels are whole ones; a
// tile's window has the channels of its columns, the last tile's more than there are.
template <typename TileOfBlock, typename X, int kPiece, bool kDiagonal = false>
struct Gemm {
  using Params = cuda::Params;
  using Tile = TileOfBlock;
  using Steps = cuda::Steps<Tile, X, kDiagonal>;
  static constexpr int kWarps = Tile::kWarps, kBlocks = Tile::kBlocks;
  static constexpr bool kWaits = true;
  static constexpr int kStages = Tile::kRows * Tile::kColumns < 128 * 128 ? kMostStages : 3;
  // Small steps are little else than what finds the buffers, unless these are constants.
  static constexpr int kTurns = Steps::kSmall ? kStages : 1;
  static constexpr int kStageBytes = (Tile::kRows + Tile::kColumns) * kStep;
  static constexpr int kBarrierBytes = Tile::kHopper ? 512 : 0;  // For Hopper: of each buffer's weights.
  // The results take the place of the buffers. Constants and a residual, which is fetched meanwhile, have places of
  // their own.
  static constexpr int kConstants = kBarrierBytes + kStages * kStageBytes;
  static constexpr int kSharedBytes = kConstants + Tile::kConstantBytes;
  static constexpr int PatchBytes(int) { return 0; }
  static constexpr int SharedBytes(bool residual, int, int) {
    return kSharedBytes + (residual ? Tile::kStagingBytes : 0);
  }
  static_assert(kConstants >= Tile::kStagingBytes && kConstants >= Tile::kSumsEnd);

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int column_tiles = p.padded_channels / Tile::kColumns;
    const int first_row = block.x() / column_tiles * Tile::kRows;
    const int first_channel = block.x() % column_tiles * Tile::kColumns;
    const int first_step = block.z() * p.steps_per_split;
    const int steps = first_step + p.steps_per_split < p.steps ? p.steps_per_split : p.steps - first_step;
    const auto pixel = [&](int row) { return int64_t{first_row + row < p.rows ? first_row + row : -1}; };
    const uint32_t staging = p.residual == nullptr ? kBarrierBytes : kSharedBytes;
    PerThread<Cursor, kWarps> cursors;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;
    // Of the n-th step, into buffer `stage`.
    const auto fetch_weights = [&](Thread thread, int n, int stage) {
      const uint32_t to = StageOf(stage) + Tile::kRows * kStep;
      if constexpr (Tile::kHopper) {
        if (thread.index() > 0) return;
        thread.ExpectBytes(Barrier(stage), Steps::kWeightBytes);
        Steps::StartWeights(p, thread, first_step + n, first_channel, to, Barrier(stage));
      } else {
        Steps::FetchWeights(thread, cursors[thread].weight, to);
        cursors[thread].weight += int64_t{p.padded_channels} * kStep;
      }
    };

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        cursors[thread] = MakeCursor(p, thread, first_row, first_channel, first_step);
        if constexpr (!Tile::kInGroups) accumulators[warp].Clear(thread);
        KeepConstants<Tile>(p, thread, kConstants, first_channel);
        // The weights of the first steps do not wait for earlier launches.
        if constexpr (Tile::kHopper) {
          if (thread.index() == 0) thread.InitBarriers(Barrier(0), kStages);
        }
        FUSELAGE_UNROLL
        for (int step = 0; step < kStages - 1; ++step) {
          if (step < steps) fetch_weights(thread, step, step);
        }
      });
      warp.WaitForEarlier();
      FUSELAGE_UNROLL
      for (int step = 0; step < kStages - 1; ++step) {
        if (step < steps) {
          warp.ForThreads([&](Thread thread) {
            FetchRows(p, thread, StageOf(step), cursors[thread].first_pieces[step], cursors[thread]);
          });
        }
        if (step == 0 && p.residual != nullptr && p.sums == nullptr) {
          warp.ForThreads([&](Thread thread) { FetchResidual<Tile>(p, thread, staging, first_channel, pixel); });
        }
        warp.CommitCopies();
      }
      warp.template WaitForCopies<kStages - 2>();
    });
    for (int first = 0; first < steps; first += kTurns) {
      FUSELAGE_UNROLL
      for (int turn = 0; turn < kTurns; ++turn) {
        const int step = first + turn, stage = kTurns > 1 ? turn : step % kStages;
        if (turn > 0 && step >= steps) break;
        // The buffer that is filled is the one that was emptied before the last barrier.
        block.Phase([&](Warp warp) {
          const auto fetch = [&] {
            const int ahead = step + kStages - 1, filled = (stage + kStages - 1) % kStages;
            if (ahead >= steps) return;
            warp.ForThreads([&](Thread thread) {
              Cursor& c = cursors[thread];
              FetchRows(p, thread, StageOf(filled), c.piece, c);
              fetch_weights(thread, ahead, filled);
              c.piece = NextPiece(p, thread, c);
            });
          };
          if constexpr (Tile::kHopper) warp.WaitForBytes(Barrier(stage), step / kStages % 2);
          Multiply(warp, StageOf(stage), step > 0, accumulators[warp], fetch);
          warp.CommitCopies();
          warp.template WaitForCopies<kStages - 2>();
        });
      }
    }

    if (p.splits > 1 && !AddSplits<Tile>(block, p, accumulators)) return;
    if (p.sums != nullptr) return StoreSums<Tile>(block, p, first_row, first_channel, accumulators);
    if (p.float_bias != nullptr) return StoreFloats<Tile>(block, p, first_channel, accumulators, pixel);
    const auto constants = [](Thread thread, int column) { return KeptPair<Tile>(thread, kConstants, column); };
    StoreCodes<Tile>(block, p, staging, first_channel, constants, accumulators, pixel);
  }

 private:
  // All of a row's channels follow each other, and their pieces are whole.
  static constexpr bool kByRows = kPiece == 16 && !kDiagonal;
  // What a thread fetches in each step: one 16-byte column of kFetchedRows rows of pixels, and pieces of weights.
  static constexpr int kRowsApart = Tile::kThreads / Steps::kPieces;
  static constexpr int kFetchedRows = Tile::kRows / kRowsApart;
  static_assert(Tile::kRows % kRowsApart == 0);

  struct Cursor {
    uint32_t first[kFetchedRows];          // Offset in the input of the window at tap (0, 0), modulo 2^32;
    int y[kFetchedRows], x[kFetchedRows];  // the tap's place, in pixels.
    int channels;                          // From the window's first on.
    Piece first_pieces[kStages - 1];       // Of the first steps,
    Piece piece;                           // of the next one,
    int next_piece;                        // and the index of the one after it.
    const int8_t* weight;                  // Of the next step; not for Hopper.
  };

  FUSELAGE_DEVICE static Cursor MakeCursor(const Params& p, Thread thread, int first_row, int first_channel,
                                           int first_step) {
    Cursor c;
    const int first_input = p.window.First(first_channel);
    c.channels = p.in_channels - first_input;
    FUSELAGE_UNROLL
    for (int i = 0; i < kFetchedRows; ++i) {
      const int row = first_row + thread.index() / Steps::kPieces + i * kRowsApart;
      const auto line = static_cast<int>(p.by_out_width.Divide(row));
      const auto image = static_cast<int>(p.by_out_height.Divide(line));
      c.y[i] = (line - image * p.out_height) * p.stride_y - p.pad_top;
      c.x[i] = (row - line * p.out_width) * p.stride_x - p.pad_left;
      const uint32_t pixel = (static_cast<uint32_t>(image * p.in_height) + c.y[i]) * p.in_width + c.x[i];
      c.first[i] = pixel * p.in_channels + first_input;
      if (row >= p.rows) c.y[i] = -(1 << 30);  // Outside of any image.
    }
    c.next_piece = first_step * Steps::kPieces + thread.index() % Steps::kPieces;
    FUSELAGE_UNROLL
    for (int step = 0; step < kStages - 1; ++step) c.first_pieces[step] = NextPiece(p, thread, c);
    c.piece = NextPiece(p, thread, c);
    if constexpr (!Tile::kHopper) c.weight = Steps::Weights(p, thread, first_step, first_channel);
    return c;
  }
  // There are pieces for as many steps as are looked ahead.
  FUSELAGE_DEVICE static Piece NextPiece(const Params& p, Thread thread, Cursor& c) {
    const Piece piece = thread.LoadConstant(p.pieces + c.next_piece);
    c.next_piece += Steps::kPieces;
    return piece;
  }

  // A buffer, and the barrier of its weights.
  FUSELAGE_DEVICE static uint32_t StageOf(int stage) { return kBarrierBytes + stage * kStageBytes; }
  FUSELAGE_DEVICE static uint32_t Barrier(int stage) { return 8 * stage; }
  static_assert(Tile::kTeams == 1);

  // Starts to fetch the cursor's pixels of a piece into a step's buffer.
  FUSELAGE_DEVICE static void FetchRows(const Params& p, Thread thread, uint32_t stage, const Piece& piece,
                                        const Cursor& c) {
    const int channels = c.channels - piece.channel;
    FUSELAGE_UNROLL
    for (int i = 0; i < kFetchedRows; ++i) {
      const int row = thread.index() / Steps::kPieces + i * kRowsApart;
      const uint32_t to = stage + Steps::Place(row, thread.index() % Steps::kPieces);
      // Channels past the last, like taps past the last, meet weights of zero.
      const bool inside = static_cast<unsigned>(c.y[i] + piece.tap_y) < static_cast<unsigned>(p.in_height) &&
                          static_cast<unsigned>(c.x[i] + piece.tap_x) < static_cast<unsigned>(p.in_width) &&
                          (kByRows || channels > 0);
      const uint8_t* from = p.input + (inside ? c.first[i] + piece.distance : 0);
      if constexpr (kPiece == 16) {
        CopyOrPad<16>(thread, to, from, inside, p.padding);
      } else if constexpr (kPiece == 8) {
        CopyOrPad<8>(thread, to, from, inside, p.padding);
        CopyOrPad<8>(thread, to + 8, from + 8, inside && channels > 8, p.padding);
      } else {
        Vector<uint8_t, 16> bytes;
        FUSELAGE_UNROLL
        for (int j = 0; j < 16; ++j) {
          bytes.values[j] = p.padding;
          if (inside && j < channels) bytes.values[j] = thread.Load(from + j);
        }
        thread.StoreShared(to, bytes);
      }
    }
  }

  template <typename Fetch>
  FUSELAGE_DEVICE static void Multiply(Warp warp, uint32_t stage, bool adds, typename Tile::Accumulators& accumulators,
                                       Fetch fetch) {
    const auto place = [&](Thread thread, int i, int half) {
      return stage + Steps::Place(Tile::Row(warp) + thread.lane() % 16, thread.lane() / 16 ^ 2 * half) +
             Tile::kFragmentRows * i * kStep;
    };
    Steps::Multiply(warp, place, stage + Tile::kRows * kStep, adds, accumulators, fetch);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_GEMM_H_

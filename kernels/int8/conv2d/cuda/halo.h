// The implicit GEMM of gemm.h, for convolutions of stride 1 whose output is as large as their input. There a tap is the
// same distance from each output pixel, in the order of memory: rows that follow each other have all their taps in
// input pixels that follow each other, the patch, of which tap (y, x) of row r is pixel r + y * dilation_y * in_width +
// x * dilation_x. A block fetches the patch once for all taps, where Gemm fetches its rows for each.
//
// Taps outside the image, where the patch has the next line's pixels, or the next image's, are read from rows of
// padding: eight, of which each lane takes the one in the banks of the pixel that it stands for.
//
// The inner dimension is [slices, taps, kStep channels]. The patch of the next slice is fetched while the taps of one
// are multiplied; weights go through kStages buffers, one step each. The grid is [row tiles * column tiles, 1, 1], with
// the blocks of the same pixels next to each other.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_HALO_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_HALO_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/steps.h"

namespace fuselage::int8::conv2d::cuda {

// The first pixel of a patch, before that of the tile's first row.
FUSELAGE_DEVICE int PixelsBefore(const Params& p) { return p.pad_top * p.in_width + p.pad_left; }

// Which taps of an output pixel lie in the image: a bit for each.
FUSELAGE_DEVICE uint32_t TapsInside(const Params& p, Thread thread, int row) {
  if (row >= p.rows) return 0;
  const auto line = static_cast<int>(p.by_out_width.Divide(row));
  const auto image = static_cast<int>(p.by_out_height.Divide(line));
  const int x = row - line * p.out_width, y = line - image * p.out_height;
  return thread.LoadConstant(p.taps_inside + x) * thread.LoadConstant(p.taps_inside + p.out_width + y);
}

template <typename TileOfBlock, typename X, bool kDiagonal = false>
struct Halo {
  using Params = cuda::Params;
  using Tile = TileOfBlock;
  using Steps = cuda::Steps<Tile, X, kDiagonal>;
  static constexpr int kWarps = Tile::kWarps;
  static constexpr int kBlocks = Tile::kBlocks;
  static constexpr bool kWaits = true;

  // Shared memory: the rows of padding, constants, weights, and the patches of two slices. In the last slice the second
  // of these is free for the residual, and then for the results.
  static constexpr int kStages = 4;
  static constexpr int kPaddingBytes = 8 * kStep;
  static constexpr int kConstants = kPaddingBytes, kWeights = kConstants + Tile::kConstantBytes;
  static constexpr int kPatches = kWeights + kStages * Steps::kWeightBytes;
  static constexpr int PatchBytes(int pixels) {
    const int bytes = pixels * kStep;
    return ((bytes > Tile::kStagingBytes ? bytes : Tile::kStagingBytes) + kPaddingBytes - 1) / kPaddingBytes *
           kPaddingBytes;
  }
  static_assert(kPatches + 2 * Tile::kStagingBytes >= Tile::kSumsEnd);
  static constexpr int SharedBytes(bool, int patch_pixels, int) { return kPatches + 2 * PatchBytes(patch_pixels); }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int column_tiles = p.padded_channels / Tile::kColumns;
    const int first_row = block.x() / column_tiles * Tile::kRows;
    const int first_channel = block.x() % column_tiles * Tile::kColumns;
    const int first_input = p.window.First(first_channel);
    const auto pixel = [&](int row) { return int64_t{first_row + row < p.rows ? first_row + row : -1}; };
    const auto patch = [&](int slice) { return static_cast<uint32_t>(kPatches + slice % 2 * p.patch_bytes); };
    const uint32_t staging = patch(p.slices);
    PerThread<Cursor, kWarps> cursors;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        Begin(p, thread, first_row + Tile::Row(warp), first_channel, cursors[thread]);
        KeepConstants<Tile>(p, thread, kConstants, first_channel);
        accumulators[warp].Clear(thread);
      });
      warp.WaitForEarlier();
      warp.ForThreads(
          [&](Thread thread) { FetchPatch(p, thread, first_row, first_input, patch(0), 0, p.patch_pixels); });
      warp.CommitCopies();
      warp.template WaitForCopies<0>();
    });
    int step = 0;
    for (int slice = 0; slice < p.slices; ++slice) {
      int tap = 0;
      for (int tap_y = 0; tap_y < p.kernel_height; ++tap_y) {
        for (int tap_x = 0; tap_x < p.kernel_width; ++tap_x, ++tap, ++step) {
          block.Phase([&](Warp warp) {
            const auto fetch = [&] {
              warp.ForThreads([&](Thread thread) {
                const int ahead = step + kStages - 1;
                const bool has_more = slice + 1 < p.slices;
                if (ahead < p.steps) FetchWeights(p, thread, ahead, cursors[thread]);
                // The last part is in the third step from the end of the slice: it arrives before the next begins.
                if (has_more) {
                  FetchPatch(p, thread, first_row, first_input + (slice + 1) * kStep, patch(slice + 1),
                             tap * p.patch_part, (tap + 1) * p.patch_part);
                }
                if (!has_more && tap == 0 && p.residual != nullptr && p.sums == nullptr) {
                  FetchResidual<Tile>(p, thread, staging, first_channel, pixel);
                }
              });
              warp.CommitCopies();
            };
            Multiply(warp, step, patch(slice), tap, tap_y * p.dilation_y * p.in_width + tap_x * p.dilation_x, cursors,
                     accumulators[warp], fetch);
            warp.template WaitForCopies<kStages - 2>();
          });
        }
      }
    }

    if (p.sums != nullptr) return StoreSums<Tile>(block, p, first_row, first_channel, accumulators);
    if (p.float_bias != nullptr) return StoreFloats<Tile>(block, p, first_channel, accumulators, pixel);
    const auto constants = [](Thread thread, int column) { return KeptPair<Tile>(thread, kConstants, column); };
    StoreCodes<Tile>(block, p, staging, first_channel, constants, accumulators, pixel);
  }

 private:
  struct Cursor {
    uint32_t taps[Tile::kRowFragments];  // Of the row that the lane gives ldmatrix: a bit for each tap in the image.
    const int8_t* weight;
  };

  FUSELAGE_DEVICE static uint32_t StageOf(int step) { return kWeights + step % kStages * Steps::kWeightBytes; }

  FUSELAGE_DEVICE static void FetchWeights(const Params& p, Thread thread, int step, Cursor& c) {
    Steps::FetchWeights(thread, c.weight, StageOf(step));
    c.weight += int64_t{p.padded_channels} * kStep;
  }

  // What no earlier kernel writes: padding, the first weights; and which taps of the warp's rows, from first_row on,
  // lie in the image.
  FUSELAGE_DEVICE static void Begin(const Params& p, Thread thread, int first_row, int first_channel, Cursor& c) {
    if (16 * thread.index() < kPaddingBytes) thread.StoreShared(16 * thread.index(), Padding<16>(p.padding));
    c.weight = Steps::Weights(p, thread, 0, first_channel);
    FUSELAGE_UNROLL
    for (int step = 0; step < kStages - 1; ++step) {
      if (step < p.steps) FetchWeights(p, thread, step, c);
    }
    FUSELAGE_UNROLL
    for (int i = 0; i < Tile::kRowFragments; ++i) {
      c.taps[i] = TapsInside(p, thread, first_row + Tile::kFragmentRows * i + thread.lane() % 16);
    }
  }

  // A slice's channels, from first_input on, of the patch's pixels from `first` on, before `end`. Those before the
  // first image, and after the last, are no row's.
  FUSELAGE_DEVICE static void FetchPatch(const Params& p, Thread thread, int first_row, int first_input, uint32_t patch,
                                         int first, int end) {
    const int piece = thread.index() % Steps::kPieces;
    const int channel = first_input + piece * 16;
    const int before = PixelsBefore(p);
    FUSELAGE_NO_UNROLL
    for (int i = first + thread.index() / Steps::kPieces; i < end && i < p.patch_pixels;
         i += Tile::kThreads / Steps::kPieces) {
      const int from = first_row - before + i;
      if (static_cast<unsigned>(from) >= static_cast<unsigned>(p.rows)) continue;
      // Channels past the last meet weights of zero.
      CopyOrPad<16>(thread, patch + Steps::Place(i, piece), p.input + from * p.in_channels + channel,
                    channel < p.in_channels, p.padding);
    }
  }

  // A tap's pixel is `distance` after the first tap's.
  template <typename Fetch>
  FUSELAGE_DEVICE static void Multiply(Warp warp, int step, uint32_t patch, int tap, int distance,
                                       PerThread<Cursor, kWarps>& cursors, typename Tile::Accumulators& accumulators,
                                       Fetch fetch) {
    const auto place = [&](Thread thread, int i, int half) {
      const uint32_t first = Steps::Place(Tile::Row(warp) + thread.lane() % 16 + distance, thread.lane() / 16);
      const bool inside = cursors[thread].taps[i] >> tap & 1;
      return (inside ? patch + first + Tile::kFragmentRows * i * kStep : first % kPaddingBytes) ^ half * 32;
    };
    Steps::Multiply(warp, place, StageOf(step), /*adds=*/true, accumulators, fetch);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_HALO_H_

// The halo of halo.h for Hopper: products by groups of four warps (wgmma), copies by one thread, patches as boxes of a
// TileMap. What a step takes beside its products is waiting, so a step has kTaps taps, the rows of one are loaded while
// another is multiplied, and the first of the next step begins before the warps meet: they wait for each other while
// it is under way.
//
// As many blocks as run at once take tiles of the same columns, one after the other: the first patch of the next tile,
// and its weights, are copied while the codes of one are stored. Where all weights of a tile have a buffer, they stay.
//
// The inner dimension is [slices, taps, kStep channels], taps up to a multiple of kTaps, those past the last of zeros.
// The grid is [blocks, 1, 1], which is a multiple of the column tiles: blocks of the same pixels are next to each
// other.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_HOPPER_HALO_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_HOPPER_HALO_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/halo.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/steps.h"

namespace fuselage::int8::conv2d::cuda {

template <typename TileOfBlock, typename X>
struct HopperHalo {
  using Params = cuda::Params;
  using Tile = TileOfBlock;
  using Steps = cuda::Steps<Tile, X, /*kDiagonal=*/false>;
  static constexpr int kWarps = Tile::kWarps;
  static constexpr int kBlocks = Tile::kColumns > 64 ? 2 : 3;
  static constexpr bool kWaits = true;

  // Shared memory: the rows of padding, barriers and constants, weights, and the patches of two slices. In a tile's
  // last slice the second of these is free for the residual, and then for the results.
  static constexpr int kTaps = kHopperTaps;
  static constexpr int kStages = 3;  // A copy begins two steps before its products.
  static constexpr int kStageBytes = kTaps * Steps::kWeightBytes;
  static constexpr int kAligned = 8 * kStep;
  static constexpr int kBarriers = kAligned, kConstants = kBarriers + 64;
  static constexpr int kWeights = (kConstants + Tile::kConstantBytes + kAligned - 1) / kAligned * kAligned;
  static constexpr int kPatches = kWeights + kStages * kStageBytes;
  static constexpr int Boxes(int pixels) { return (pixels + TileMap::kMostRows - 1) / TileMap::kMostRows; }
  static constexpr int BoxRows(int pixels) { return ((pixels + Boxes(pixels) - 1) / Boxes(pixels) + 7) / 8 * 8; }
  static constexpr int PatchBytes(int pixels) {
    const int bytes = Boxes(pixels) * BoxRows(pixels) * kStep;
    return ((bytes > Tile::kStagingBytes ? bytes : Tile::kStagingBytes) + kAligned - 1) / kAligned * kAligned;
  }
  static_assert(kPatches + 2 * Tile::kStagingBytes >= Tile::kSumsEnd);
  static constexpr int SharedBytes(bool, int patch_pixels, int) { return kPatches + 2 * PatchBytes(patch_pixels); }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int column_tiles = p.padded_channels / Tile::kColumns;
    const int row_tiles = (p.rows + Tile::kRows - 1) / Tile::kRows, next = p.blocks / column_tiles;
    const int first_channel = block.x() % column_tiles * Tile::kColumns;
    const int first_input = p.window.First(first_channel);
    const int steps = p.steps / kTaps, groups = steps / p.slices;
    const bool weights_stay = steps <= kStages;
    int tile = block.x() / column_tiles;
    int weights_left = (weights_stay ? 1 : (row_tiles - tile + next - 1) / next) * steps;  // To be copied,
    int copied = 0;                                                                        // from this step on.
    int parities = 0;  // A bit for each barrier: how often it was waited for, modulo 2.
    Place at = {};
    PerThread<TapsOfRows, kWarps> inside;
    PerWarp<RowsOfTaps, kWarps> rows;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;
    const auto patch = [&](int slot) { return static_cast<uint32_t>(kPatches + slot * p.patch_bytes); };
    const auto copy_weights = [&](Thread thread, int stage) {
      if (weights_left == 0) return;
      StartWeights(p, thread, copied, first_channel, stage);
      --weights_left;
      if (++copied == steps) copied = 0;
    };
    // The first tap of the step that is next, when its operands are there. The tile's first one adds to nothing.
    const auto begin = [&](Warp warp, bool adds) {
      if (at.group == 0) warp.WaitForBytes(PatchBarrier(at.slot), parities >> (kStages + at.slot) & 1);
      warp.WaitForBytes(WeightBarrier(at.stage), weights_stay ? 0 : parities >> at.stage & 1);
      Start<0>(warp, at.stage, patch(at.slot), at.tap, adds, inside, rows[warp], accumulators[warp]);
    };

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (16 * thread.index() < kAligned) thread.StoreShared(16 * thread.index(), Padding<16>(p.padding));
        KeepConstants<Tile>(p, thread, kConstants, first_channel);
        if (thread.index() > 0) return;
        thread.InitBarriers(kBarriers, kStages + 2);
        FUSELAGE_UNROLL
        for (int i = 0; i < kStages; ++i) {
          if (i + 1 < kStages || weights_stay) copy_weights(thread, i);
        }
      });
      warp.WaitForEarlier();
      warp.ForThreads([&](Thread thread) {
        if (thread.index() == 0) StartPatch(p, thread, tile * Tile::kRows, first_input, patch(0), 0, PatchBarrier(0));
      });
    });
    FUSELAGE_NO_UNROLL
    for (; tile < row_tiles; tile += next) {
      const int first_row = tile * Tile::kRows;
      const auto pixel = [&](int row) { return int64_t{first_row + row < p.rows ? first_row + row : -1}; };
      block.Phase([&](Warp warp) {
        warp.ForThreads([&](Thread thread) {
          FUSELAGE_UNROLL
          for (int i = 0; i < Tile::kRowFragments; ++i) {
            inside[thread].taps[i] =
                TapsInside(p, thread, first_row + Tile::Row(warp) + Tile::kFragmentRows * i + thread.lane() % 16);
          }
          thread.ShareWithCopies();
          if (thread.index() == 0 && first_channel == 0) PrefetchTile(p, thread, first_row + next * Tile::kRows);
        });
        begin(warp, /*adds=*/false);
      });
      FUSELAGE_NO_UNROLL
      for (int step = 0; step < steps; ++step) {
        const Place now = at;
        const Tap second = now.tap.Next(p), third = second.Next(p);
        const bool begins_slice = now.group == 0;
        parities ^= 1 << now.stage | (begins_slice ? 1 << (kStages + now.slot) : 0);
        at.tap = third.Next(p);
        at.stage = now.stage + 1 == kStages ? 0 : now.stage + 1;
        if (++at.group == groups) at = {{}, now.slice + 1, 0, at.stage, 1 - now.slot};
        block.Phase([&](Warp warp) {
          Start<1>(warp, now.stage, patch(now.slot), second, /*adds=*/true, inside, rows[warp], accumulators[warp]);
          // Nobody reads the buffers of the step before any more.
          warp.ForThreads([&](Thread thread) {
            if (thread.index() == 0 && !weights_stay)
              copy_weights(thread, now.stage == 0 ? kStages - 1 : now.stage - 1);
            if (!begins_slice) return;
            const int other = 1 - now.slot;
            if (now.slice + 1 < p.slices) {
              if (thread.index() > 0) return;
              StartPatch(p, thread, first_row, first_input, patch(other), now.slice + 1, PatchBarrier(other));
            } else if (p.residual != nullptr && p.sums == nullptr) {
              FetchResidual<Tile>(p, thread, patch(other), Recomputed(first_channel), pixel);
            }
          });
          Start<2>(warp, now.stage, patch(now.slot), third, /*adds=*/true, inside, rows[warp], accumulators[warp]);
          if (step + 1 < steps) {
            begin(warp, /*adds=*/true);
            warp.template WaitForProducts<Steps::kPending>();
          } else {
            warp.template WaitForProducts<0>();
            warp.CommitCopies();
            warp.template WaitForCopies<0>();
          }
        });
      }
      // The last slice's patch gives way to the next tile's first.
      const uint32_t staging = patch(at.slot);
      at = {{}, 0, 0, weights_stay ? 0 : at.stage, 1 - at.slot};
      block.Part([&](Warp warp) {
        warp.ForThreads([&](Thread thread) {
          if (thread.index() > 0 || tile + next >= row_tiles) return;
          StartPatch(p, thread, first_row + next * Tile::kRows, first_input, patch(at.slot), 0, PatchBarrier(at.slot));
        });
      });
      const int channel = Recomputed(first_channel);
      if (p.sums != nullptr) {
        StoreSums<Tile>(block, p, first_row, channel, accumulators);
      } else if (p.float_bias != nullptr) {
        StoreFloats<Tile>(block, p, channel, accumulators, pixel);  // The block's only tile.
      } else {
        const auto constants = [](Thread thread, int column) { return KeptPair<Tile>(thread, kConstants, column); };
        StoreCodes<Tile>(block, p, staging, channel, constants, accumulators, pixel);
      }
    }
  }

 private:
  // Of the rows that a lane gives ldmatrix: a bit for each tap in the image.
  struct TapsOfRows {
    uint32_t taps[Tile::kRowFragments];
  };
  // Those of a step's taps stay in registers until they are multiplied.
  struct RowsOfTaps {
    typename Steps::Rows halves[kTaps][2];
  };
  static_assert(kTaps == 3);  // Run has each of them.

  // A tap: how many came before it, its place in the line of taps, and the distance in pixels from the first.
  struct Tap {
    int index, x, distance;

    FUSELAGE_DEVICE Tap Next(const Params& p) const {
      const int next = distance + p.dilation_x;
      if (x + 1 < p.kernel_width) return {index + 1, x + 1, next};
      return {index + 1, 0, next + p.dilation_y * p.in_width - p.kernel_width * p.dilation_x};
    }
  };
  // A step of a tile, its first tap, and the buffers of its weights and its patch.
  struct Place {
    Tap tap;
    int slice, group, stage, slot;
  };

  FUSELAGE_DEVICE static uint32_t WeightBarrier(int stage) { return kBarriers + 8 * stage; }
  FUSELAGE_DEVICE static uint32_t PatchBarrier(int slot) { return kBarriers + 8 * (kStages + slot); }

  FUSELAGE_DEVICE static void StartWeights(const Params& p, Thread thread, int step, int first_channel, int stage) {
    thread.ExpectBytes(WeightBarrier(stage), kStageBytes);
    FUSELAGE_UNROLL
    for (int i = 0; i < kTaps; ++i) {
      Steps::StartWeights(p, thread, step * kTaps + i, first_channel,
                          kWeights + stage * kStageBytes + i * Steps::kWeightBytes, WeightBarrier(stage));
    }
  }
  // A slice's channels, from first_input on, of the pixels around those from first_row on.
  FUSELAGE_DEVICE static void StartPatch(const Params& p, Thread thread, int first_row, int first_input, uint32_t patch,
                                         int slice, uint32_t barrier) {
    const int rows = p.input_pixels.box_rows, bytes = rows * TileMap::kColumns;
    thread.ExpectBytes(barrier, p.boxes * bytes);
    FUSELAGE_NO_UNROLL
    for (int i = 0; i < p.boxes; ++i) {
      thread.CopyTile(patch + i * bytes, p.input_pixels, first_input + slice * kStep,
                      first_row - PixelsBefore(p) + i * rows, barrier);
    }
  }

  // So that a later tile, from first_row on, finds its pixels and residuals in the L2 cache: large batches do not fit
  // there. The pixels around a tile are those of others.
  FUSELAGE_DEVICE static void PrefetchTile(const Params& p, Thread thread, int first_row) {
    const int rows = p.rows - first_row < Tile::kRows ? p.rows - first_row : Tile::kRows;
    if (rows <= 0) return;
    thread.Prefetch(p.input + int64_t{first_row} * p.in_channels, rows * p.in_channels);
    if (p.residual != nullptr && p.out_channels % 16 == 0) {
      thread.Prefetch(p.residual + int64_t{first_row} * p.out_channels, rows * p.out_channels);
    }
  }

  // Starts the products of a step's n-th tap. Those past the last are outside of every image, and meet weights of zero.
  template <int n>
  FUSELAGE_DEVICE static void Start(Warp warp, int stage, uint32_t patch, Tap tap, bool adds,
                                    PerThread<TapsOfRows, kWarps>& inside, RowsOfTaps& rows,
                                    typename Tile::Accumulators& accumulators) {
    const auto place = [&](Thread thread, int i, int half) {
      const uint32_t first = Steps::Place(Tile::Row(warp) + thread.lane() % 16 + tap.distance, thread.lane() / 16);
      const bool is_inside = inside[thread].taps[i] >> tap.index & 1;
      return (is_inside ? patch + first + Tile::kFragmentRows * i * kStep : first % kAligned) ^ half * 32;
    };
    Steps::StartProducts(warp, place, kWeights + stage * kStageBytes + n * Steps::kWeightBytes, adds, rows.halves[n],
                         accumulators);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_HOPPER_HALO_H_

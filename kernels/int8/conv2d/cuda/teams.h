// Several teams of warps that multiply one tile: each has every kTeams-th step of the inner dimension, and buffers of
// its own. Where a product has few tiles, a step's latencies are then met kTeams at a time.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TEAMS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TEAMS_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

template <typename Tile>
struct Teams {
  static constexpr int kTeams = Tile::kTeams, kWarps = kTeams * Tile::kWarps;

  FUSELAGE_DEVICE static int Of(Warp warp) { return kTeams > 1 ? warp.index() / Tile::kWarps : 0; }

  // Four outputs of a thread.
  struct Output {
    int place;     // Of the first, in the tile; -1: this thread has none.
    int channels;  // That there are, of its four; at most 0: none.
    int64_t index;
    FourConstants constants;
    uint32_t residuals;

    FUSELAGE_DEVICE Output() {}
    FUSELAGE_DEVICE Output(const Params& p, Thread thread, int first_row, int first_channel) {
      const int row = 4 * thread.index() / Tile::kColumns, column = 4 * thread.index() % Tile::kColumns;
      place = row < Tile::kRows ? row * kPitch + 4 * column : -1;
      channels = place >= 0 && first_row + row < p.rows ? p.out_channels - first_channel - column : 0;
      channels = channels < 4 ? channels : 4;
      index = int64_t{first_row + row} * p.out_channels + first_channel + column;
      if (channels > 0) constants = LoadFourConstants(p, thread, first_channel + column);
    }
    FUSELAGE_DEVICE void LoadResiduals(const Params& p, Thread thread) {
      if (channels > 0) residuals = LoadFourResiduals(p, thread, channels, index);
    }
  };
  // Of sums in shared memory, as kSumsPitch.
  static constexpr int kPitch = 4 * (Tile::kColumns + 8), kSums = Tile::kRows * kPitch;
  static constexpr int kBytes = kTeams * kSums;
  static_assert(kTeams == 1 || Tile::kRows * Tile::kColumns <= 4 * kTeams * Tile::kThreads);

  // Adds the teams' sums, and stores the outputs.
  FUSELAGE_DEVICE static void Store(Block& block, const Params& p, int first_channel,
                                    PerWarp<typename Tile::Accumulators, kWarps>& accumulators,
                                    PerThread<Output, kWarps>& outputs) {
    block.Phase([&](Warp warp) {
      const uint32_t first = Of(warp) * kSums;
      warp.ForThreads([&](Thread thread) {
        ForPairs<Tile>(
            warp, thread, accumulators[warp], [](int column) { return column; },
            [&](int row, int column, const int32_t* values, int) {
              thread.StoreShared(first + row * kPitch + 4 * column, Vector<int32_t, 2>{{values[0], values[1]}});
            });
      });
    });
    PerThread<Vector<int32_t, 4>, kWarps> sums;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int place = outputs[thread].place;
        if (place < 0) return;
        sums[thread] = thread.LoadShared<Vector<int32_t, 4>>(place);
        FUSELAGE_UNROLL
        for (int team = 1; team < kTeams; ++team) {
          Add(sums[thread], thread.LoadShared<Vector<int32_t, 4>>(place + team * kSums));
        }
      });
    });
    if (p.splits > 1 && !AddSplits(block, p, outputs, sums)) return;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const Output& output = outputs[thread];
        if (output.channels <= 0) return;
        const int channel = first_channel + 4 * thread.index() % Tile::kColumns;
        StoreFour(p, thread,
                  p.float_bias != nullptr ? FourFloats(p, thread, sums[thread], channel, output.channels)
                                          : FourValues(p, sums[thread], output.constants, output.residuals),
                  output.channels, output.index);
      });
    });
  }

 private:
  FUSELAGE_DEVICE static void Add(Vector<int32_t, 4>& sums, const Vector<int32_t, 4>& more) {
    FUSELAGE_UNROLL
    for (int i = 0; i < 4; ++i) sums.values[i] += more.values[i];
  }

  // As AddSplits.
  FUSELAGE_DEVICE static bool AddSplits(Block& block, const Params& p, PerThread<Output, kWarps>& outputs,
                                        PerThread<Vector<int32_t, 4>, kWarps>& sums) {
    const auto partial = [&](Thread thread, int split) {
      return reinterpret_cast<Vector<int32_t, 4>*>(p.partial) + thread.index() +
             (int64_t{block.x()} * p.splits + split) * (Tile::kRows * Tile::kColumns / 4);
    };
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (outputs[thread].place >= 0) thread.Store(partial(thread, block.z()), sums[thread]);
        thread.Fence();
      });
    });
    TakeTileTicket(block, p, 0);
    bool last = false;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        last = HasLastTicket(p, thread, 0);
        if (!last || outputs[thread].place < 0) return;
        thread.Fence();
        FUSELAGE_UNROLL_BY_4
        for (int split = 0; split < p.splits; ++split) {
          if (split != block.z()) Add(sums[thread], thread.Load(partial(thread, split)));
        }
      });
    });
    return last;
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_TEAMS_H_

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

  FUSELAGE_DEVICE static int Of(Warp warp) { return warp.index() / Tile::kWarps; }

  // Four outputs of a thread, of which kThreads have some.
  struct Outputs {
    int channel, channels;  // The first, and those that there are; at most 0: none.
    int64_t index;

    // Computed again where it is used again: registers are dear.
    FUSELAGE_DEVICE Outputs(const Params& p, Thread thread, int first_row, int first_channel) {
      const int first = 4 * Recomputed(thread.index()), row = first / Tile::kColumns;
      channel = first_channel + first % Tile::kColumns;
      channels = row < Tile::kRows && first_row + row < p.rows ? p.out_channels - channel : 0;
      channels = channels < 4 ? channels : 4;
      index = int64_t{first_row + row} * p.out_channels + channel;
    }
  };
  // What they take beside the sums, loaded ahead.
  struct Operands {
    FourConstants constants;
    uint32_t residuals;

    FUSELAGE_DEVICE void LoadConstants(const Params& p, Thread thread, const Outputs& outputs) {
      if (outputs.channels > 0) constants = LoadFourConstants(p, thread, outputs.channel);
    }
    FUSELAGE_DEVICE void LoadResiduals(const Params& p, Thread thread, const Outputs& outputs) {
      if (outputs.channels > 0) residuals = LoadFourResiduals(p, thread, outputs.channels, outputs.index);
    }
  };
  // Of sums in shared memory, as kSumsPitch.
  static constexpr int kPitch = 4 * (Tile::kColumns + 8), kSums = Tile::kRows * kPitch;
  static constexpr int kBytes = kTeams * kSums;
  static constexpr int kThreads = Tile::kRows * Tile::kColumns / 4;  // That have outputs.
  static_assert(kThreads <= kTeams * Tile::kThreads);
  // A cluster's blocks are the splits of one tile, and share out its outputs. What a block needs for that: a barrier,
  // and the others' sums of its share.
  static constexpr int kShares = 16, kClusterBytes = kShares + 16 * kThreads;

  // Before a block waits for earlier launches; `cluster`: a place for kClusterBytes that nothing else uses.
  FUSELAGE_DEVICE static void Begin(const Params& p, Warp warp, uint32_t cluster) {
    if constexpr (kHasClusters) {
      if (p.share_bits == 0) return;
      warp.ForThreads([&](Thread thread) {
        if (thread.index() != 0) return;
        thread.InitBarriers(cluster, 1);
        thread.ExpectBytes(cluster, (p.splits - 1) * 16 << p.share_bits);
      });
      warp.ArriveInCluster();
    }
  }

  // Adds the teams' sums, and stores the outputs.
  FUSELAGE_DEVICE static void Store(Block& block, const Params& p, int first_row, int first_channel, uint32_t cluster,
                                    PerWarp<typename Tile::Accumulators, kWarps>& accumulators,
                                    PerThread<Operands, kWarps>& operands) {
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
    block.Part([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (thread.index() >= kThreads) return;
        const int row = 4 * thread.index() / Tile::kColumns, column = 4 * thread.index() % Tile::kColumns;
        const int place = row * kPitch + 4 * column;
        sums[thread] = thread.LoadShared<Vector<int32_t, 4>>(place);
        FUSELAGE_UNROLL
        for (int team = 1; team < kTeams; ++team) {
          Add(sums[thread], thread.LoadShared<Vector<int32_t, 4>>(place + team * kSums));
        }
      });
    });
    if (p.share_bits > 0) {
      if constexpr (kHasClusters) AddInCluster(block, p, cluster, sums);
    } else if (p.splits > 1 && !AddSplits(block, p, sums)) {
      return;
    }
    block.Part([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const Outputs outputs(p, thread, first_row, first_channel);
        if (outputs.channels <= 0 || !IsOwn(block, p, thread)) return;
        const Operands& o = operands[thread];
        StoreFour(p, thread,
                  p.float_bias != nullptr ? FourFloats(p, thread, sums[thread], outputs.channel, outputs.channels)
                                          : FourValues(p, sums[thread], o.constants, o.residuals),
                  outputs.channels, outputs.index);
      });
    });
  }

 private:
  FUSELAGE_DEVICE static void Add(Vector<int32_t, 4>& sums, const Vector<int32_t, 4>& more) {
    FUSELAGE_UNROLL
    for (int i = 0; i < 4; ++i) sums.values[i] += more.values[i];
  }

  FUSELAGE_DEVICE static int OwnerOf(const Params& p, Thread thread) { return thread.index() >> p.share_bits; }
  FUSELAGE_DEVICE static bool IsOwn(const Block& block, const Params& p, Thread thread) {
    return p.share_bits == 0 || OwnerOf(p, thread) == block.z();
  }

  // Each block gets the sums of its own outputs from all others.
  FUSELAGE_DEVICE static void AddInCluster(Block& block, const Params& p, uint32_t cluster,
                                           PerThread<Vector<int32_t, 4>, kWarps>& sums) {
    const auto place = [&](int split, Thread thread) {
      const int in_share = thread.index() & ((1 << p.share_bits) - 1);
      return cluster + kShares + 16 * (split << p.share_bits | in_share);
    };
    block.Part([&](Warp warp) {
      warp.WaitForCluster();
      warp.ForThreads([&](Thread thread) {
        if (thread.index() >= kThreads || IsOwn(block, p, thread)) return;
        thread.StoreInCluster(OwnerOf(p, thread), place(block.z(), thread), sums[thread], cluster);
      });
    });
    block.Part([&](Warp warp) {
      warp.WaitForStores(cluster, 0);
      warp.ForThreads([&](Thread thread) {
        if (!IsOwn(block, p, thread)) return;
        FUSELAGE_UNROLL_BY_4
        for (int split = 0; split < p.splits; ++split) {
          if (split != block.z()) Add(sums[thread], thread.LoadShared<Vector<int32_t, 4>>(place(split, thread)));
        }
      });
    });
  }

  // As AddSplits.
  FUSELAGE_DEVICE static bool AddSplits(Block& block, const Params& p, PerThread<Vector<int32_t, 4>, kWarps>& sums) {
    const auto partial = [&](Thread thread, int split) {
      return reinterpret_cast<Vector<int32_t, 4>*>(p.partial) + thread.index() +
             (int64_t{block.x()} * p.splits + split) * (Tile::kRows * Tile::kColumns / 4);
    };
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (thread.index() < kThreads) thread.Store(partial(thread, block.z()), sums[thread]);
        thread.Fence();
      });
    });
    TakeTileTicket(block, p, 0);
    bool last = false;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        last = HasLastTicket(p, thread, 0);
        if (!last || thread.index() >= kThreads) return;
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

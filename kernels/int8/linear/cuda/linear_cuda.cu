#include "kernels/int8/linear/cuda/linear_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::linear::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeAt;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::LoadCodes;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;

// 16 * kRowTiles rows by 8 * kChannelTiles channels a block.
template <typename X, int kRowTiles, int kChannelTiles, int kBlockWarps>
struct Linear {
  static constexpr int kWarps = kBlockWarps;
#if __CUDA_ARCH__ >= 1000  // At four blocks' 128 registers ptxas spills.
  static constexpr int kBlocks = kRowTiles * kChannelTiles == 1 ? 6 : 3;
#else
  static constexpr int kBlocks = kRowTiles * kChannelTiles == 1 ? 6 : 4;
#endif
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kRows = 16 * kRowTiles, kChannels = 8 * kChannelTiles;
  static_assert(kChannelPadding % kChannels == 0, "weights are loaded without bounds");
  static constexpr int kSharedBytes = kWarps * kRows * kChannels * 4;  // [warps][rows][channels] sums.
  using Params = LaunchParams;

  FUSELAGE_DEVICE static uint32_t SumOffset(int warp, int row, int channel) {
    return static_cast<uint32_t>(4 * ((warp * kRows + row) * kChannels + channel));
  }

  FUSELAGE_DEVICE static Codes16 LoadX(Thread thread, const Params& p, int64_t row, int chunk) {
    const int k = kChunk * chunk + 16 * (thread.lane() % 4);
    if (row >= p.rows) return {};
    return LoadCodes(thread, p.x + row * p.layer.depth + k, p.layer.depth - k);
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int64_t first_row = int64_t{block.x()} * kRows;
    const int first_channel = block.y() * kChannels;
    block.Phase([&](Warp warp) {
      Lanes<Vector<int32_t, 4>> sums[kRowTiles][kChannelTiles];
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < kRowTiles; ++i) {
          FUSELAGE_UNROLL
          for (int j = 0; j < kChannelTiles; ++j) sums[i][j][thread] = {};
        }
      });
      for (int chunk = warp.index(); chunk < p.layer.pitch / kChunk; chunk += kWarps) {
        Lanes<Codes16> low[kRowTiles], high[kRowTiles], weights[kChannelTiles];
        warp.ForThreads([&](Thread thread) {
          FUSELAGE_UNROLL
          for (int i = 0; i < kRowTiles; ++i) {
            low[i][thread] = LoadX(thread, p, first_row + 16 * i + thread.lane() / 4, chunk);
            high[i][thread] = LoadX(thread, p, first_row + 16 * i + 8 + thread.lane() / 4, chunk);
          }
          FUSELAGE_UNROLL
          for (int j = 0; j < kChannelTiles; ++j) {
            weights[j][thread] = LoadWeights(thread, p.layer, first_channel + 8 * j, chunk);
          }
        });
        FUSELAGE_UNROLL
        for (int i = 0; i < kRowTiles; ++i) {
          FUSELAGE_UNROLL
          for (int j = 0; j < kChannelTiles; ++j) {
            MultiplyChunk<X>(warp, low[i], high[i], weights[j], &sums[i][j]);
          }
        }
      }
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < kRowTiles; ++i) {
          FUSELAGE_UNROLL
          for (int j = 0; j < kChannelTiles; ++j) {
            const Vector<int32_t, 4>& s = sums[i][j][thread];
            const int row = 16 * i + thread.lane() / 4, channel = 8 * j + 2 * (thread.lane() % 4);
            thread.StoreShared(SumOffset(warp.index(), row, channel), Vector<int32_t, 2>{{s.values[0], s.values[1]}});
            thread.StoreShared(SumOffset(warp.index(), row + 8, channel),
                               Vector<int32_t, 2>{{s.values[2], s.values[3]}});
          }
        }
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        for (int i = thread.index(); i < kRows * kChannels; i += kThreads) {
          const int row = i / kChannels, channel = i % kChannels;
          if (first_row + row >= p.rows || first_channel + channel >= p.layer.channels) continue;
          int32_t sum = 0;
          FUSELAGE_UNROLL
          for (int w = 0; w < kWarps; ++w) sum += thread.LoadShared<int32_t>(SumOffset(w, row, channel));
          StoreOutput(thread, p.layer, sum, first_row + row, first_channel + channel, p.y);
        }
      });
    });
  }
};
// Many warps for latency where blocks are few, large tiles for reuse where they are many.
template <typename X>
using Narrow = Linear<X, 1, 1, 8>;
template <typename X>
using Wide = Linear<X, 4, 4, 4>;

struct Pack {
  static constexpr int kWarps = kItemWarps;
  using Params = PackParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int groups = p.pitch / 16;
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const int64_t row = item / groups;
      const int k = 16 * static_cast<int>(item % groups), count = p.depth - k;
      Codes16 codes = LoadCodes(thread, p.x + row * p.depth + k, count);
      FUSELAGE_UNROLL
      for (int i = 0; i < 16; ++i) {
        if (i < count) codes.values[i / 4] ^= CodeAt(p.flip, i % 4);
      }
      StoreCodes(thread, p.y + row * p.pitch + k, codes, 16);
    });
  }
};

struct Finish {
  static constexpr int kWarps = kItemWarps;
  using Params = FinishParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const int64_t row = item / p.layer.channels;
      const int channel = static_cast<int>(item % p.layer.channels);
      StoreOutput(thread, p.layer, thread.Load(p.sums + row * p.layer.padded_channels + channel), row, channel, p.y);
    });
  }
};

template <typename Kernel>
void LaunchTiles(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Kernel>(
      {RowBlocks(params.wide, params.rows), ChannelBlocks(params.wide, params.layer.channels), 1}, Kernel::kSharedBytes,
      params, stream);
}

}  // namespace

int RowBlocks(bool wide, int64_t rows) {
  const int tile = wide ? Wide<uint8_t>::kRows : Narrow<uint8_t>::kRows;
  return static_cast<int>((rows + tile - 1) / tile);
}

int ChannelBlocks(bool wide, int64_t channels) {
  const int tile = wide ? Wide<uint8_t>::kChannels : Narrow<uint8_t>::kChannels;
  return static_cast<int>((channels + tile - 1) / tile);
}

void Launch(const LaunchParams& params, void* stream) {
  if (params.wide) {
    params.x_is_signed ? LaunchTiles<Wide<int8_t>>(params, stream) : LaunchTiles<Wide<uint8_t>>(params, stream);
  } else {
    params.x_is_signed ? LaunchTiles<Narrow<int8_t>>(params, stream) : LaunchTiles<Narrow<uint8_t>>(params, stream);
  }
}

void LaunchPack(const PackParams& params, void* stream) {
  fuselage::cuda::Launch<Pack>({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream);
}

void LaunchFinish(const FinishParams& params, void* stream) {
  fuselage::cuda::Launch<Finish>({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::int8::linear::cuda

#include "kernels/int8/global_avg_pool_linear/cuda/global_avg_pool_linear_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::global_avg_pool_linear::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::PerThread;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;

using linear::cuda::kChunk;

// Shared memory: the sums of the pixels, the means' codes [layer.pitch], the products' sums [warps][channels].
FUSELAGE_HOST_DEVICE uint32_t CodesOffset(const LaunchParams& p) {
  return avg_pool2d::cuda::SumOffset(p.slices, 0, p.groups);
}
FUSELAGE_HOST_DEVICE uint32_t ProductOffset(const LaunchParams& p, int warp, int channel) {
  return CodesOffset(p) + p.layer.pitch + 4 * (warp * kBlockChannels + channel);
}

// Means are codes of type X. One row of the 16 that mma multiplies is in use.
template <typename X>
struct GlobalAvgPoolLinear {
  static constexpr int kWarps = kBlockWarps;
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr bool kWaits = true;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const int first_channel = block.x() * kBlockChannels;
    const int64_t image = block.y();
    const int chunks = p.layer.pitch / kChunk;
    PerThread<Codes16, kWarps> first_weights;  // On their way before the pixels are there.
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (warp.index() < chunks) {
          first_weights[thread] = linear::cuda::LoadWeights(thread, p.layer, first_channel, warp.index());
        }
      });
      warp.WaitForEarlier();
      warp.ForThreads([&](Thread thread) {
        for (int work = thread.index(); work < p.slices * p.groups; work += kThreads) {
          const int group = work % p.groups, slice = work / p.groups;
          const avg_pool2d::cuda::TapGrid taps = {p.x + image * p.pixels * p.layer.depth + 16 * group, 1, p.pixels, 0,
                                                  p.layer.depth};
          avg_pool2d::cuda::SumTaps(thread, p.mean, taps, slice, p.slices, p.layer.depth - 16 * group,
                                    avg_pool2d::cuda::SumOffset(slice, group, p.groups));
        }
      });
    });
    block.Phase([&](Warp warp) { warp.ForThreads([&](Thread thread) { StoreMeans(thread, p); }); });
    block.Phase([&](Warp warp) {
      Lanes<Vector<int32_t, 4>> sums;
      Lanes<Codes16> row, no_row, weights;
      warp.ForThreads([&](Thread thread) {
        sums[thread] = {};
        row[thread] = {};
        no_row[thread] = {};
      });
      for (int chunk = warp.index(); chunk < chunks; chunk += kWarps) {
        warp.ForThreads([&](Thread thread) {
          weights[thread] = chunk == warp.index() ? first_weights[thread]
                                                  : linear::cuda::LoadWeights(thread, p.layer, first_channel, chunk);
          if (thread.lane() < 4) {
            row[thread] = thread.LoadShared<Codes16>(CodesOffset(p) + kChunk * chunk + 16 * thread.lane());
          }
        });
        linear::cuda::MultiplyChunk<X>(warp, row, no_row, weights, &sums);
      }
      warp.ForThreads([&](Thread thread) {
        if (thread.lane() >= 4) return;
        thread.StoreShared(ProductOffset(p, warp.index(), 2 * thread.lane()),
                           Vector<int32_t, 2>{{sums[thread].values[0], sums[thread].values[1]}});
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const int channel = thread.index();
        if (channel >= kBlockChannels || first_channel + channel >= p.layer.channels) return;
        int32_t sum = 0;
        FUSELAGE_UNROLL
        for (int w = 0; w < kWarps; ++w) sum += thread.LoadShared<int32_t>(ProductOffset(p, w, channel));
        linear::cuda::StoreOutput(thread, p.layer, sum, image, first_channel + channel, p.y);
      });
    });
  }

 private:
  FUSELAGE_DEVICE static void StoreMeans(Thread thread, const Params& p) {
    for (int word = thread.index(); word < p.layer.pitch / 4; word += kThreads) {
      uint32_t codes = 0;  // Behind the channels, where the weights are 0.
      if (4 * word < p.layer.depth) {
        codes = avg_pool2d::cuda::MeanWord(thread, p.mean, p.pixels, p.pixels, p.slices, word / 4, p.groups, word % 4);
      }
      thread.StoreShared(CodesOffset(p) + 4 * word, codes);
    }
  }
};

}  // namespace

int64_t SharedBytes(const LaunchParams& params) {
  return int64_t{64} * params.slices * params.groups + params.layer.pitch + 4 * kBlockWarps * kBlockChannels;
}

void Launch(const LaunchParams& params, void* stream) {
  const int channel_blocks = (params.layer.channels + kBlockChannels - 1) / kBlockChannels;
  const std::array<int, 3> grid = {channel_blocks, params.images, 1};
  const int shared_bytes = static_cast<int>(SharedBytes(params));
  if (params.means_are_signed) {
    fuselage::cuda::Launch<GlobalAvgPoolLinear<int8_t>>(grid, shared_bytes, params, stream);
  } else {
    fuselage::cuda::Launch<GlobalAvgPoolLinear<uint8_t>>(grid, shared_bytes, params, stream);
  }
}

}  // namespace fuselage::int8::global_avg_pool_linear::cuda

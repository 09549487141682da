#include "kernels/dynamic_quantize/cuda/dynamic_quantize_cuda.h"

#include "kernels/cuda/launch.h"
#include "kernels/dynamic_quantize/cuda/row_scale.h"

namespace fuselage::dynamic_quantize::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Warp;

struct Quantize {
  static constexpr int kWarps = 4;
  using Params = LaunchParams;

  // f(i) for a thread's elements of its warp's group.
  template <typename F>
  FUSELAGE_DEVICE static void ForElements(Thread thread, const Params& p, int64_t group, F f) {
    const int64_t offset = thread.LoadConstant(p.offsets + group);
    for (int segment = 0; segment < p.segments; ++segment) {
      const int64_t first = offset + thread.LoadConstant(p.starts + segment);
      for (int64_t k = thread.lane(); k < p.length; k += kWarpSize) f(first + k);
    }
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      const int64_t group = int64_t{block.x()} * kWarps + warp.index();
      if (group >= p.groups) return;
      Lanes<Range> ranges;
      warp.ForThreads([&](Thread thread) {
        Range range;
        ForElements(thread, p, group, [&](int64_t i) { Widen(thread.Load(p.x + i), &range); });
        ranges[thread] = range;
      });
      Join(warp, kWarpSize, &ranges);
      warp.ForThreads([&](Thread thread) {
        const float scale = SymmetricScale(ranges[thread]);
        if (thread.lane() == 0) thread.Store(p.scales + group, scale);
        ForElements(thread, p, group,
                    [&](int64_t i) { thread.Store(p.codes + i, SymmetricCode(thread.Load(p.x + i), scale)); });
      });
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Quantize>({(params.groups + Quantize::kWarps - 1) / Quantize::kWarps, 1, 1},
                                   /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::dynamic_quantize::cuda

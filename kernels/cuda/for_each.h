// Kernels whose threads do independent items: each thread takes every n-th.
#ifndef FUSELAGE_KERNELS_CUDA_FOR_EACH_H_
#define FUSELAGE_KERNELS_CUDA_FOR_EACH_H_

#include <cstdint>

#include "kernels/cuda/block.h"

namespace fuselage::cuda {

// How `count` items are spread (see Spread in kernel.h); every block has kItemWarps warps.
struct Items {
  uint32_t count = 0;  // Below 2^31.
  int blocks = 0;
};
constexpr int kItemWarps = 8;

// Calls f(thread, i) for every i below items.count.
template <typename F>
FUSELAGE_DEVICE void ForEach(Block& block, const Items& items, F f) {
  constexpr uint32_t kThreads = kItemWarps * kWarpSize;
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      const uint32_t first = static_cast<uint32_t>(block.x()) * kThreads + static_cast<uint32_t>(thread.index());
      for (uint32_t i = first; i < items.count; i += static_cast<uint32_t>(items.blocks) * kThreads) f(thread, i);
    });
  });
}

// The same in two steps, use(thread, load(thread, i)): each thread loads for kAtOnce items before it uses the first.
template <int kAtOnce, typename Load, typename Use>
FUSELAGE_DEVICE void ForEach(Block& block, const Items& items, Load load, Use use) {
  const uint32_t threads = static_cast<uint32_t>(items.blocks) * kItemWarps * kWarpSize;
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      const uint32_t first =
          static_cast<uint32_t>(block.x()) * kItemWarps * kWarpSize + static_cast<uint32_t>(thread.index());
      for (uint32_t i = first; i < items.count; i += kAtOnce * threads) {
        decltype(load(thread, i)) loaded[kAtOnce];
        FUSELAGE_UNROLL
        for (uint32_t k = 0; k < kAtOnce; ++k) {
          if (i + k * threads < items.count) loaded[k] = load(thread, i + k * threads);
        }
        FUSELAGE_UNROLL
        for (uint32_t k = 0; k < kAtOnce; ++k) {
          if (i + k * threads < items.count) use(thread, loaded[k]);
        }
      }
    });
  });
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_FOR_EACH_H_

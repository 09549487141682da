// Clusters, emulated: blocks store to each other's shared memory, and each kind of mistake is caught.
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/block.h"

namespace fuselage::cuda {
namespace {

using ::testing::HasSubstr;

enum class Lapse {
  kNone,
  kDoesNotArrive,
  kOneWarpArrives,
  kWaitsInThePhaseOfArrival,
  kDoesNotWaitForCluster,
  kOutsideCluster,
  kNoSuchBlock,
  kNoBarrier,
  kPlaceInUse,
  kPlaceTwice,
  kStoresTooLittle,
  kWaitsInThePhaseOfStores,
  kLoadsBefore,
  kEndsBefore,
};

// Thread t of block z stores 100 z + t in each other block, and stores the sum of what it got and its own.
struct SumOfCluster {
  static constexpr int kWarps = 2, kThreads = kWarps * kWarpSize;
  static constexpr uint32_t kBarrier = 0, kPlace = 16;
  struct Params {
    Lapse lapse;
    int blocks;
    int32_t* sums;  // [clusters, blocks, kThreads]
  };
  static uint32_t PlaceOf(int z, Thread thread) { return kPlace + 16 * (z * kThreads + thread.index()); }

  static void Run(Block& block, const Params& params) {
    const auto is = [&](Lapse lapse) { return params.lapse == lapse; };
    const int z = block.z(), blocks = params.blocks;
    PerThread<int32_t, kWarps> sums;
    const auto store = [&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        sums[thread] = 100 * z + thread.index();
        for (int to = 0; to < blocks; ++to) {
          if (to == z || (is(Lapse::kStoresTooLittle) && to == 2 && thread.index() == 5)) continue;
          const bool elsewhere = is(Lapse::kPlaceTwice) && thread.index() == 1;
          thread.StoreInCluster(is(Lapse::kNoSuchBlock) ? to + 1 : to, PlaceOf(elsewhere ? 0 : z, thread),
                                {{sums[thread], 0, 0, 0}}, is(Lapse::kNoBarrier) ? 8 : kBarrier);
        }
      });
    };
    const auto add = [&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        for (int from = 0; from < blocks; ++from) {
          if (from == z) continue;
          sums[thread] += thread.LoadShared<Vector<int32_t, 4>>(PlaceOf(from, thread)).values[0];
        }
        thread.Store(params.sums + (block.x() * blocks + z) * kThreads + thread.index(), sums[thread]);
      });
    };
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        if (thread.index() == 0) {
          thread.InitBarriers(kBarrier, 1);
          thread.ExpectBytes(kBarrier, (blocks - 1) * kThreads * 16);
        }
      });
      if (is(Lapse::kDoesNotArrive) || (is(Lapse::kOneWarpArrives) && warp.index() > 0)) return;
      warp.ArriveInCluster();
      if (is(Lapse::kWaitsInThePhaseOfArrival)) warp.WaitForCluster();
    });
    block.Phase([&](Warp warp) {
      if (!is(Lapse::kPlaceInUse) || z != 1) return;
      warp.ForThreads([&](Thread thread) { thread.StoreShared(PlaceOf(0, thread), 1); });
    });
    block.Phase([&](Warp warp) {
      if (!is(Lapse::kDoesNotWaitForCluster)) warp.WaitForCluster();
      store(warp);
      if (is(Lapse::kWaitsInThePhaseOfStores)) warp.WaitForStores(kBarrier, 0);
    });
    if (is(Lapse::kEndsBefore)) return;
    block.Phase([&](Warp warp) {
      if (!is(Lapse::kLoadsBefore)) warp.WaitForStores(kBarrier, 0);
      add(warp);
    });
  }
};

std::string ErrorOf(Lapse lapse, int blocks = 4) {
  constexpr int kThreads = SumOfCluster::kThreads, kClusters = 3;
  std::vector<int32_t> sums(kClusters * blocks * kThreads);
  Emulator emulator;
  emulator.AllowWrites("sums", sums.data(), static_cast<int64_t>(sums.size() * sizeof(int32_t)));
  const int bytes = SumOfCluster::kPlace + blocks * kThreads * 16;
  emulator.Launch<SumOfCluster>({kClusters, 1, blocks}, bytes, {lapse, blocks, sums.data()},
                                lapse != Lapse::kOutsideCluster);
  if (!emulator.error().empty()) return emulator.error();
  for (int i = 0; i < kClusters * blocks * kThreads; ++i) {
    EXPECT_EQ(sums[i], 100 * (blocks * (blocks - 1) / 2) + blocks * (i % kThreads));
  }
  return "";
}

TEST(EmulatedClusterTest, BlocksStoreToEachOther) {
  for (const int blocks : {2, 3, kMostOfCluster}) EXPECT_EQ(ErrorOf(Lapse::kNone, blocks), "") << blocks;
  EXPECT_EQ(ErrorOf(Lapse::kNone, kMostOfCluster + 1), "more blocks than a cluster has");
}

TEST(EmulatedClusterTest, CatchesLapses) {
  const std::pair<Lapse, const char*> kLapses[] = {
      {Lapse::kDoesNotArrive, "waits for warps of its cluster that do not arrive"},
      {Lapse::kOneWarpArrives, "waits for warps of its cluster that do not arrive"},
      {Lapse::kWaitsInThePhaseOfArrival, "waits for warps of its cluster that do not arrive"},
      {Lapse::kDoesNotWaitForCluster, "stores to a block of its cluster that may not have begun"},
      {Lapse::kOutsideCluster, "arrives in its cluster, where there is none"},
      {Lapse::kNoSuchBlock, "that is not there, or has ended"},
      {Lapse::kNoBarrier, "stores for 8, which is no barrier"},
      {Lapse::kPlaceInUse, "which is in use there"},
      {Lapse::kPlaceTwice, "which is in use there"},
      {Lapse::kStoresTooLittle, "waits for 3072 bytes, of which 3024 are on their way"},
      {Lapse::kWaitsInThePhaseOfStores, "waits for 3072 bytes, of which"},
      {Lapse::kLoadsBefore, "which nobody stored"},
      {Lapse::kEndsBefore, "a block ends before what its cluster stores there"},
  };
  for (const auto& [lapse, what] : kLapses) EXPECT_THAT(ErrorOf(lapse), HasSubstr(what)) << static_cast<int>(lapse);
}

}  // namespace
}  // namespace fuselage::cuda

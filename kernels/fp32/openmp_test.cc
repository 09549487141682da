#include "kernels/fp32/openmp.h"

#include <functional>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/thread_pool.h"

namespace fuselage::fp32 {
namespace {

using runtime::ThreadPool;

void Region(unsigned threads, std::function<void()> body) {
  GOMP_parallel([](void* data) { (*static_cast<std::function<void()>*>(data))(); }, &body, threads, 0);
}

TEST(OpenMp, ATeamHasEachNumberOnce) {
  ThreadPool pool(3);
  const OpenMpScope scope(pool, 3);
  for (const unsigned wanted : {0u, 1u, 2u, 3u, 5u}) {
    const int threads = wanted == 0 ? 3 : static_cast<int>(wanted);
    std::vector<int> runs(threads, 0), sizes(threads, 0), parallel(threads, 0);
    Region(wanted, [&] {
      const int number = omp_get_thread_num();
      ++runs[number];
      sizes[number] = omp_get_num_threads();
      parallel[number] = omp_in_parallel();
    });
    EXPECT_EQ(runs, std::vector<int>(threads, 1)) << wanted;
    EXPECT_EQ(sizes, std::vector<int>(threads, threads)) << wanted;
    EXPECT_EQ(parallel, std::vector<int>(threads, threads > 1)) << wanted;
  }
  EXPECT_EQ(omp_get_num_threads(), 1);
  EXPECT_EQ(omp_in_parallel(), 0);
}

TEST(OpenMp, BarriersSeparatePhases) {
  constexpr int kPhases = 200;
  ThreadPool pool(3);
  const OpenMpScope scope(pool, 3);
  std::vector<int> written(3, 0);
  std::vector<int> seen_late(3, 0);
  Region(0, [&] {
    const int number = omp_get_thread_num();
    for (int phase = 1; phase <= kPhases; ++phase) {
      written[number] = phase;
      GOMP_barrier();
      for (int other : written) seen_late[number] += other != phase;
      GOMP_barrier();
    }
  });
  EXPECT_EQ(seen_late, std::vector<int>(3, 0));
}

TEST(OpenMp, ABarrierOfATeamThatTakesTurnsIsFatal) {
  kernels::Serial serial;
  const OpenMpScope scope(serial, 2);
  EXPECT_DEATH(Region(0, [] { GOMP_barrier(); }), "concurrent");
}

TEST(OpenMp, ARegionWithinARegionHasOneThread) {
  ThreadPool pool(2);
  const OpenMpScope scope(pool, 2);
  std::vector<int> inner_sizes(2, 0), maxima(2, 0);
  Region(0, [&] {
    const int outer = omp_get_thread_num();
    maxima[outer] = omp_get_max_threads();
    Region(0, [&] {
      inner_sizes[outer] = omp_get_num_threads();
      GOMP_barrier();
    });
    EXPECT_EQ(omp_get_thread_num(), outer);
  });
  EXPECT_EQ(inner_sizes, std::vector<int>(2, 1));
  EXPECT_EQ(maxima, std::vector<int>(2, 2));
}

TEST(OpenMp, ScopesNestAndEnd) {
  EXPECT_EQ(omp_get_max_threads(), 1);
  ThreadPool pool(2);
  kernels::Serial serial;
  {
    const OpenMpScope scope(pool, 2);
    EXPECT_EQ(omp_get_max_threads(), 2);
    {
      const OpenMpScope inner(serial, 1);
      EXPECT_EQ(omp_get_max_threads(), 1);
    }
    EXPECT_EQ(omp_get_max_threads(), 2);
  }
  EXPECT_EQ(omp_get_max_threads(), 1);
  int runs = 0;
  Region(0, [&] { ++runs; });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace fuselage::fp32

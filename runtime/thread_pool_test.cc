#include "runtime/thread_pool.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fuselage::runtime {
namespace {

TEST(ThreadPool, RunsEachTaskOnceOnItsThread) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int tasks : {0, 1, 2, 3, 4, 7, 64, 1000}) {
      std::vector<int> runs(tasks), owner(tasks, -1);  // Each element is written by one thread only.
      pool.For(tasks, [&](int task, int thread) {
        ++runs[task];
        owner[task] = thread;
      });
      EXPECT_EQ(runs, std::vector<int>(tasks, 1));
      if (tasks <= 1) continue;
      for (int thread = 0; thread < threads; ++thread) {
        for (int task = tasks * thread / threads; task < tasks * (thread + 1) / threads; ++task) {
          EXPECT_EQ(owner[task], thread) << task << " of " << tasks;
        }
      }
    }
  }
}

TEST(ThreadPool, FewerThanOneThreadIsOne) { EXPECT_EQ(ThreadPool(0).threads(), 1); }

TEST(ThreadPool, ResultsOfOneJobAreSeenByTheNext) {
  ThreadPool pool(3);
  std::vector<int64_t> a(97, 1), b(97, 0);
  for (int round = 0; round < 2000; ++round) {
    // Each task reads what other threads wrote in the job before.
    pool.For(97, [&](int task, int) { b[task] = a[96 - task] + 1; });
    pool.For(97, [&](int task, int) { a[task] = b[96 - task]; });
  }
  EXPECT_EQ(a, std::vector<int64_t>(97, 2001));
}

TEST(ThreadPool, WakesUpAfterSleep) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> sum{0};
    pool.For(10, [&](int task, int) { sum += task; });
    EXPECT_EQ(sum, 45);
  }
}

TEST(ThreadPool, CallerWaitsForASlowWorker) {
  ThreadPool pool(2);
  std::vector<int> done(2, 0);
  pool.For(2, [&](int task, int) {
    if (task == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done[task] = 1;
  });
  EXPECT_EQ(done, std::vector<int>(2, 1));
}

TEST(ThreadPool, MoreThreadsThanCores) {
  ThreadPool pool(32);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> sum{0};
    pool.For(64, [&](int task, int) { sum += task; });
    EXPECT_EQ(sum, 64 * 63 / 2);
  }
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 20; ++i) ThreadPool pool(4);
}

}  // namespace
}  // namespace fuselage::runtime

#include "runtime/thread_pool.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <numeric>
#include <system_error>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace fuselage::runtime {
namespace {

TEST(ThreadPool, RunsEachTaskOnceAndOneAtATimeOfAThread) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int tasks : {0, 1, 2, 3, 4, 7, 64, 1000, 65535, 65536, 200001}) {
      std::vector<int> runs(tasks);
      std::vector<int64_t> of_thread(threads);  // What the sanitizer would see two threads write.
      pool.For(tasks, [&](int task, int thread) {
        ++runs[task];
        ++of_thread[thread];
      });
      EXPECT_EQ(runs, std::vector<int>(tasks, 1));
      EXPECT_EQ(std::accumulate(of_thread.begin(), of_thread.end(), int64_t{0}), tasks);
    }
  }
}

// Whatever a thread that does not get on has not begun, others run.
TEST(ThreadPool, OthersTakeWhatAThreadHasNotBegun) {
  for (int threads : {2, 3}) {
    ThreadPool pool(threads);
    for (int slow = 0; slow < threads; ++slow) {
      std::atomic<int> others{0};
      const int tasks = 10 * threads, own = 10 * slow;
      pool.For(tasks, [&](int task, int) {
        if (task != own) {
          ++others;
          return;
        }
        while (others.load() < tasks - 1) std::this_thread::yield();
      });
      EXPECT_EQ(others, tasks - 1);
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

TEST(ThreadPool, WorkersKeepOffTheCallersCoreUnlessItSleeps) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE && cores.size() < 2; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    const int callers = cores[round / 3 % 2];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(callers, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    std::atomic<int> workers{-1};
    cpu_set_t later;
    pool.For(2, [&](int, int thread) {
      if (thread == 1) {
        workers = sched_getcpu();
        for (int wait = 0; wait < 10000; ++wait) {  // Until the caller sleeps, for seconds if need be.
          sched_getaffinity(0, sizeof(later), &later);
          if (CPU_ISSET(callers, &later)) break;
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      }
      while (workers.load() < 0) std::this_thread::yield();  // The caller leaves the worker its task.
    });
    EXPECT_NE(workers, callers);
    EXPECT_TRUE(CPU_ISSET(callers, &later));
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

TEST(ThreadPool, CountsJoinsOfSeveralThreads) {
  ThreadPool one(1), two(2);
  for (int tasks : {0, 1, 2, 5}) {
    one.For(tasks, [](int, int) {});
    two.For(tasks, [](int, int) {});
  }
  EXPECT_EQ(one.joins(), 0);
  EXPECT_EQ(two.joins(), 2);
}

TEST(ThreadPool, CallersOfDifferentThreadsInTurn) {
  ThreadPool pool(3);
  for (int caller = 0; caller < 10; ++caller) {
    std::atomic<int> sum{0};
    std::thread([&] {
      for (int round = 0; round < 100; ++round) pool.For(5, [&](int task, int) { sum += task; });
    }).join();
    EXPECT_EQ(sum, 1000);
  }
}

TEST(ThreadPool, AnExceptionOfATaskReachesTheCaller) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int thrower = 0; thrower < 24; ++thrower) {
      std::atomic<int> running{0}, ended{0};
      const auto run = [&] {
        pool.For(24, [&](int task, int) {
          ++running;
          if (task == thrower) {
            --running;
            throw task;
          }
          std::this_thread::yield();
          ++ended;
          --running;
        });
      };
      try {
        run();
        FAIL() << "no exception of task " << thrower << " on " << threads << " threads";
      } catch (int task) {
        EXPECT_EQ(task, thrower);
      }
      EXPECT_EQ(running, 0) << "a task still runs in the frame of a call that has returned";
      EXPECT_LT(ended, 24);
      std::atomic<int> sum{0};
      pool.For(10, [&](int task, int) { sum += task; });
      EXPECT_EQ(sum, 45) << "the pool serves on";
    }
  }
}

TEST(ThreadPool, WhereAllTasksThrowOneExceptionArrives) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    EXPECT_THROW(pool.For(4, [](int, int) { throw std::bad_alloc(); }), std::bad_alloc);
  }
}

// 0 where a pool that the system refuses threads throws, and one that it does not refuse any serves.
int TryTooManyThreads() {
  const rlimit limit = {1 << 30, 1 << 30};  // Room for the stacks of some threads, not of all.
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  try {
    ThreadPool pool(ThreadPool::kMaxThreads);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) return 3;
    ThreadPool small(2);
    std::atomic<int> sum{0};
    small.For(10, [&](int task, int) { sum += task; });
    return sum == 45 ? 0 : 4;
  }
  return 5;
}

// qemu-user leaves that limit as it was.
bool LimitsAddressSpace() {
  rlimit before, after;
  if (getrlimit(RLIMIT_AS, &before) != 0) return false;
  const rlimit lower = {std::min<rlim_t>(before.rlim_max, rlim_t{1} << 46), before.rlim_max};
  if (setrlimit(RLIMIT_AS, &lower) != 0 || getrlimit(RLIMIT_AS, &after) != 0) return false;
  return setrlimit(RLIMIT_AS, &before) == 0 && after.rlim_cur == lower.rlim_cur;
}

TEST(ThreadPool, ARefusedThreadIsAnExceptionAndLeavesNone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes address space for itself";
#endif
  if (!LimitsAddressSpace()) GTEST_SKIP() << "the system does not limit address space";
  EXPECT_EXIT(_exit(TryTooManyThreads()), ::testing::ExitedWithCode(0), "");
}

TEST(ThreadPool, StartsAndStopsWithoutWork) {
  for (int i = 0; i < 20; ++i) ThreadPool pool(4);
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(3);
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums) {
    callers.emplace_back([&pool, &sum] {
      for (int call = 0; call < 200; ++call) {
        std::vector<int> seen(50);  // This call's alone.
        pool.For(50, [&](int task, int) { seen[task] += task; });
        for (int value : seen) sum += value;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 200 * 50 * 49 / 2));
}

}  // namespace
}  // namespace fuselage::runtime

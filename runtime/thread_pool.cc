#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fuselage::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than the serial part between two joins and than one thread usually waits for another. Who waits longer gives
// its core up: to other programs, to a worker that has lost its own.
constexpr auto kSpin = std::chrono::microseconds(200);
constexpr int kPausesPerClockRead = 16;

void Pause() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

// A number that one thread sets and others wait for. The lowest bit beside it says that someone sleeps, so that no
// system call wakes nobody.
class Signal {
 public:
  static constexpr uint32_t kMax = UINT32_MAX >> 1;

  uint32_t value() const { return bits_.load(std::memory_order_acquire) >> 1; }

  void Set(uint32_t value) {
    if (bits_.exchange(value << 1) & kSleeping) Futex(FUTEX_WAKE_PRIVATE, INT_MAX);
  }

  // Returns once `done(value())`: spins, then sleeps.
  template <typename Done, typename Prepare>
  void Await(bool spin, Done done, Prepare prepare_sleep) {
    if (done(value())) return;
    for (const auto start = Clock::now(); spin && Clock::now() - start < kSpin;) {
      for (int i = 0; i < kPausesPerClockRead; ++i) {
        Pause();
        if (done(value())) return;
      }
    }
    prepare_sleep();
    while (true) {
      const uint32_t bits = bits_.fetch_or(kSleeping) | kSleeping;
      if (done(bits >> 1)) return;
      Futex(FUTEX_WAIT_PRIVATE, bits);
    }
  }

 private:
  static constexpr uint32_t kSleeping = 1;

  // Waiting returns at once where the bits are no longer `argument`.
  void Futex(int operation, uint32_t argument) { syscall(SYS_futex, &bits_, operation, argument, nullptr, nullptr, 0); }

  std::atomic<uint32_t> bits_{0};
  static_assert(sizeof(bits_) == sizeof(uint32_t));
};

}  // namespace

// One cache line goes from the caller to the workers, and one comes back, beside each thread's share.
struct ThreadPool::State {
  struct alignas(64) Job {
    Signal number;
    int tasks = 0, items = 0;
    const absl::FunctionRef<void(int task, int thread)>* body = nullptr;
  };
  static constexpr uint32_t kEnd = Signal::kMax;  // In place of a job's number.
  // Items of a job that nobody has begun, of which the thread takes the first and others the last. In one word with the
  // job's number, so that a thread that comes late takes nothing of the next job for one of its own.
  class alignas(64) Share {
   public:
    static constexpr int kMostItems = (1 << 16) - 1;

    void Set(uint32_t number, int begin, int end) {
      bits_.store(Bits(number, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)), std::memory_order_release);
    }
    // -1: there is none.
    int Take(uint32_t number, bool first) {
      for (uint64_t bits = bits_.load(std::memory_order_acquire);;) {
        const auto begin = static_cast<uint32_t>(bits >> 16 & kMostItems),
                   end = static_cast<uint32_t>(bits & kMostItems);
        if (static_cast<uint32_t>(bits >> 32) != number || begin >= end) return -1;
        const uint64_t left = first ? Bits(number, begin + 1, end) : Bits(number, begin, end - 1);
        if (bits_.compare_exchange_weak(bits, left, std::memory_order_acquire)) {
          return static_cast<int>(first ? begin : end - 1);
        }
      }
    }

   private:
    static uint64_t Bits(uint32_t number, uint32_t begin, uint32_t end) {
      return uint64_t{number} << 32 | uint64_t{begin} << 16 | end;
    }

    std::atomic<uint64_t> bits_{0};
  };

  explicit State(int threads)
      : threads(threads),
        shares(std::make_unique<Share[]>(threads)),
        workers(std::make_unique<std::thread[]>(threads - 1)) {
    own_cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && threads <= CPU_COUNT(&allowed);
    try {
      for (int thread = 1; thread < threads; ++thread) {
        workers[thread - 1] = std::thread([this, thread] { Work(thread); });
      }
    } catch (...) {
      Stop();
      throw;
    }
  }

  // The end of the workers that were started.
  void Stop() {
    job.number.Set(kEnd);
    for (int i = 0; i < threads - 1 && workers[i].joinable(); ++i) workers[i].join();
  }

  // The thread's share, and then what others have not begun of theirs: a system that runs other programs may keep a
  // thread waiting for longer than a job takes.
  void RunShares(uint32_t number, int thread) {
    int items = 0;
    for (int i = 0; i < threads; ++i) {
      Share& share = shares[(thread + i) % threads];
      for (int item; (item = share.Take(number, i == 0)) >= 0; ++items) RunItem(item, thread);
    }
    if (items > 0 && unfinished.fetch_sub(items) == items) finished.Set(number);
  }

  // Tasks that no thread has begun when one throws are skipped. The job lasts until its items are counted: all that
  // belongs to it is there.
  void RunItem(int item, int thread) {
    const int begin = static_cast<int>(int64_t{job.tasks} * item / job.items);
    const int end = static_cast<int>(int64_t{job.tasks} * (item + 1) / job.items);
    try {
      for (int task = begin; task < end && !failed.load(std::memory_order_relaxed); ++task) (*job.body)(task, thread);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  }

  void Work(int thread) {
    for (uint32_t last = 0;;) {
      job.number.Await(
          own_cores, [last](uint32_t number) { return number != last; }, [] {});
      last = job.number.value();
      if (last == kEnd) return;
      RunShares(last, thread);
    }
  }

  // A system left to itself may keep a worker on the caller's core for many runs while another core idles.
  void KeepOffCallersCore() {
    const int core = sched_getcpu();
    if (core == callers_core || core < 0) return;
    callers_core = core;
    cpu_set_t others = allowed;
    CPU_CLR(core, &others);
    BindWorkers(others);
  }

  // The caller's core is free while it sleeps: a worker that has lost its own to another program may go there.
  void LeaveCallersCore() {
    if (callers_core < 0) return;
    callers_core = -1;
    BindWorkers(allowed);
  }

  void BindWorkers(const cpu_set_t& cores) {
    for (int i = 0; i < threads - 1; ++i) pthread_setaffinity_np(workers[i].native_handle(), sizeof(cores), &cores);
  }

  void Run(int tasks, const absl::FunctionRef<void(int task, int thread)>& body) {
    const std::lock_guard<std::mutex> one_caller(callers);
    if (own_cores) KeepOffCallersCore();
    const auto number = static_cast<uint32_t>(joins++ % (kEnd - 1)) + 1;
    job.tasks = tasks;
    job.items = std::min(tasks, Share::kMostItems);
    job.body = &body;
    unfinished = job.items;
    for (int64_t thread = 0; thread < threads; ++thread) {
      shares[thread].Set(number, static_cast<int>(job.items * thread / threads),
                         static_cast<int>(job.items * (thread + 1) / threads));
    }
    job.number.Set(number);
    RunShares(number, 0);
    finished.Await(
        own_cores, [number](uint32_t done) { return done == number; }, [this] { LeaveCallersCore(); });
    if (!failed.load(std::memory_order_relaxed)) return;
    failed = false;
    std::rethrow_exception(std::exchange(failure, nullptr));
  }

  std::mutex callers;  // Held by the one whose job it is.
  Job job;
  alignas(64) std::atomic<int> unfinished{0};  // The job's items.
  Signal finished;                             // The number of the job.
  std::atomic<bool> failed{false};  // A task of this job has thrown,
  std::exception_ptr failure;       // the first of them this.
  const int threads;
  const std::unique_ptr<Share[]> shares;
  const std::unique_ptr<std::thread[]> workers;
  bool own_cores = false;  // Else spinning does not help.
  cpu_set_t allowed;
  int callers_core = -1;  // Which workers keep off; -1: none.
  int64_t joins = 0;
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(std::max(1, threads))) {}

ThreadPool::~ThreadPool() { state_->Stop(); }

int ThreadPool::threads() const { return state_->threads; }
int64_t ThreadPool::joins() const { return state_->joins; }

void ThreadPool::For(int tasks, absl::FunctionRef<void(int task, int thread)> body) {
  if (tasks > 1 && state_->threads > 1) return state_->Run(tasks, body);
  for (int task = 0; task < tasks; ++task) body(task, 0);
}

}  // namespace fuselage::runtime

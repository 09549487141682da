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
  template <typename Done>
  void Await(bool spin, Done done) {
    if (done(value())) return;
    for (const auto start = Clock::now(); spin && Clock::now() - start < kSpin;) {
      for (int i = 0; i < kPausesPerClockRead; ++i) {
        Pause();
        if (done(value())) return;
      }
    }
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

// One cache line goes from the caller to the workers, and one comes back from each of them.
struct ThreadPool::State {
  struct alignas(64) Job {
    Signal number;
    int tasks = 0;
    const absl::FunctionRef<void(int task, int thread)>* body = nullptr;  // Null: the end.
  };
  struct alignas(64) Worker {
    Signal done;  // The number of the job.
    std::thread thread;
  };

  explicit State(int threads) : threads(threads), workers(std::make_unique<Worker[]>(threads - 1)) {
    own_cores = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && threads <= CPU_COUNT(&allowed);
    try {
      for (int thread = 1; thread < threads; ++thread) {
        workers[thread - 1].thread = std::thread([this, thread] { Work(thread, workers[thread - 1]); });
      }
    } catch (...) {
      Stop();
      throw;
    }
  }

  // The end of the workers that were started.
  void Stop() {
    Publish(0, nullptr);
    for (int i = 0; i < threads - 1 && workers[i].thread.joinable(); ++i) workers[i].thread.join();
  }

  // Tasks that no thread has begun when one throws are skipped.
  void RunShare(int thread) {
    const int begin = static_cast<int>(int64_t{job.tasks} * thread / threads);
    const int end = static_cast<int>(int64_t{job.tasks} * (thread + 1) / threads);
    try {
      for (int task = begin; task < end && !failed.load(std::memory_order_relaxed); ++task) (*job.body)(task, thread);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  }

  void Work(int thread, Worker& self) {
    for (uint32_t last = 0;;) {
      job.number.Await(own_cores, [last](uint32_t number) { return number != last; });
      if (job.body == nullptr) return;
      last = job.number.value();
      RunShare(thread);
      self.done.Set(last);
    }
  }

  // A system left to itself may keep a worker on the caller's core for many runs while another core idles.
  void KeepOffCallersCore() {
    const int core = sched_getcpu();
    if (core == callers_core || core < 0) return;
    callers_core = core;
    cpu_set_t others = allowed;
    CPU_CLR(core, &others);
    for (int i = 0; i < threads - 1; ++i) {
      pthread_setaffinity_np(workers[i].thread.native_handle(), sizeof(others), &others);
    }
  }

  uint32_t Publish(int tasks, const absl::FunctionRef<void(int task, int thread)>* body) {
    job.tasks = tasks;
    job.body = body;
    const uint32_t number = static_cast<uint32_t>(++joins & Signal::kMax);
    job.number.Set(number);
    return number;
  }

  void Run(int tasks, const absl::FunctionRef<void(int task, int thread)>& body) {
    const std::lock_guard<std::mutex> one_caller(callers);
    if (own_cores) KeepOffCallersCore();
    const uint32_t number = Publish(tasks, &body);
    RunShare(0);
    for (int i = 0; i < threads - 1; ++i) {
      workers[i].done.Await(own_cores, [number](uint32_t done) { return done == number; });
    }
    if (!failed.load(std::memory_order_relaxed)) return;
    failed = false;
    std::rethrow_exception(std::exchange(failure, nullptr));
  }

  std::mutex callers;  // Held by the one whose job it is.
  Job job;
  std::atomic<bool> failed{false};  // A task of this job has thrown,
  std::exception_ptr failure;       // the first of them this.
  const int threads;
  const std::unique_ptr<Worker[]> workers;
  bool own_cores = false;  // Else spinning does not help.
  cpu_set_t allowed;
  int callers_core = -1;
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

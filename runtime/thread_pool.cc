#include "runtime/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace fuselage::runtime {
namespace {

// Some 200 us: longer than the serial part between two layers and than one thread waits for another within a layer.
constexpr int kSpins = 4000;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

}  // namespace

// A job is published by raising `epoch`, and is done when `pending` is back at 0. Whoever waits announces that it is
// about to sleep before it looks at the condition a last time, and whoever makes the condition true looks for sleepers
// after it; with sequential consistency one of the two sees the other.
struct ThreadPool::State {
  explicit State(int threads) : threads(threads) {
    // Spinning helps only where every thread has a core of its own.
    spins = threads <= static_cast<int>(std::thread::hardware_concurrency()) ? kSpins : 0;
  }

  void RunShare(int thread) {
    const int begin = static_cast<int>(int64_t{tasks} * thread / threads);
    const int end = static_cast<int>(int64_t{tasks} * (thread + 1) / threads);
    for (int task = begin; task < end; ++task) (*body)(task, thread);
  }

  template <typename Condition>
  void Wait(Condition condition) {
    for (int i = 0; i < spins; ++i) {
      if (condition()) return;
      Pause();
    }
    std::unique_lock<std::mutex> lock(mutex);
    sleepers.fetch_add(1);
    wake.wait(lock, condition);
    sleepers.fetch_sub(1);
  }

  void WakeSleepers() {
    if (sleepers.load() == 0) return;
    { std::lock_guard<std::mutex> lock(mutex); }
    wake.notify_all();
  }

  void Work(int thread) {
    for (uint64_t seen = 0;; ++seen) {
      Wait([&] { return epoch.load() != seen; });
      if (stop) return;
      RunShare(thread);
      if (pending.fetch_sub(1) == 1) WakeSleepers();
    }
  }

  void Publish() {
    pending.store(threads - 1);
    epoch.fetch_add(1);
    WakeSleepers();
  }

  const int threads;
  int spins;
  // Written before `epoch` is raised, read after it was seen.
  const absl::FunctionRef<void(int task, int thread)>* body = nullptr;
  int tasks = 0;
  bool stop = false;

  alignas(64) std::atomic<uint64_t> epoch{0};
  alignas(64) std::atomic<int> pending{0};
  alignas(64) std::atomic<int> sleepers{0};
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(std::max(1, threads))) {
  for (int thread = 1; thread < state_->threads; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->Work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->Publish();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::threads() const { return state_->threads; }

void ThreadPool::For(int tasks, absl::FunctionRef<void(int task, int thread)> body) {
  if (tasks <= 1 || state_->threads == 1) {
    for (int task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  state_->body = &body;
  state_->tasks = tasks;
  state_->Publish();
  state_->RunShare(0);
  state_->Wait([this] { return state_->pending.load() == 0; });
}

}  // namespace fuselage::runtime

// A persistent pool of threads (see kernels/core/parallel.h).
#ifndef FUSELAGE_RUNTIME_THREAD_POOL_H_
#define FUSELAGE_RUNTIME_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "kernels/core/parallel.h"

namespace fuselage::runtime {

// `threads` - 1 workers and the caller. Where every thread can have a core of its own, threads that wait spin for a
// while before they sleep, and workers keep off the caller's core, unless it sleeps.
class ThreadPool : public kernels::Parallel {
 public:
  // CPU_SETSIZE: the cores that the affinity calls can name. More threads than cores only wait for one another.
  static constexpr int kMaxThreads = 1024;

  // Throws std::system_error where the system refuses a thread; none is left then.
  explicit ThreadPool(int threads);
  ~ThreadPool() override;

  int threads() const override;
  // Where a body throws, tasks that have not begun are skipped, and once all others have ended For throws the first
  // exception; the pool serves on. Calls from several threads take turns; a body must not call For of its own pool.
  void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) override;

  // Calls of For so far that more than one thread took part in.
  int64_t joins() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_THREAD_POOL_H_

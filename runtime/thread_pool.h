// A persistent pool of threads with a static schedule (see kernels/core/parallel.h).
#ifndef FUSELAGE_RUNTIME_THREAD_POOL_H_
#define FUSELAGE_RUNTIME_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "kernels/core/parallel.h"

namespace fuselage::runtime {

// `threads` - 1 workers and the caller. Where every thread can have a core of its own, threads that wait spin for a
// while before they sleep, and workers keep off the caller's core.
class ThreadPool : public kernels::Parallel {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool() override;

  int threads() const override;
  void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) override;

  // Calls of For so far that more than one thread took part in.
  int64_t joins() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_THREAD_POOL_H_

// A persistent pool of threads with a static schedule (see kernels/core/parallel.h).
#ifndef FUSELAGE_RUNTIME_THREAD_POOL_H_
#define FUSELAGE_RUNTIME_THREAD_POOL_H_

#include <memory>

#include "kernels/core/parallel.h"

namespace fuselage::runtime {

// `threads` - 1 workers and the caller. Workers spin for a short while after a job, then sleep.
class ThreadPool : public kernels::Parallel {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool() override;

  int threads() const override;
  void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_THREAD_POOL_H_

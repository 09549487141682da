// How a kernel spreads work over threads; runtime/thread_pool.h implements it.
#ifndef FUSELAGE_KERNELS_CORE_PARALLEL_H_
#define FUSELAGE_KERNELS_CORE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"

namespace fuselage::kernels {

class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual int threads() const = 0;

  // Calls body(task, thread) for each task in [0, tasks), and returns when all are done; one at a time has a thread's
  // number. Thread t of T begins with the first of the consecutive tasks [tasks*t/T, tasks*(t+1)/T), so that caches
  // stay warm from layer to layer, and then may take others'. Bodies do not nest calls of For. A kernel's result
  // depends neither on the number of threads nor on which of them ran a task.
  virtual void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) = 0;
};

// Runs everything on the calling thread.
class Serial : public Parallel {
 public:
  int threads() const override { return 1; }
  void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) override {
    for (int task = 0; task < tasks; ++task) body(task, 0);
  }
};

// Splits [0, n) into at most one range per thread, each of a multiple of `grain` elements but for the last. `grain` is
// the least work that is worth waking a thread for.
void ForRanges(Parallel& parallel, int64_t n, int64_t grain, absl::FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_PARALLEL_H_

// SpanRecorder: threads that note when they work. Kernels find it in their context in place of the pool that it wraps,
// so that runs which are not recorded know nothing of it.
#ifndef FUSELAGE_RUNTIME_SPAN_RECORDER_H_
#define FUSELAGE_RUNTIME_SPAN_RECORDER_H_

#include <chrono>
#include <cstdint>
#include <vector>

#include "kernels/core/parallel.h"
#include "runtime/executor.h"

namespace fuselage::runtime {

class SpanRecorder : public kernels::Parallel {
 public:
  // Time begins now.
  explicit SpanRecorder(kernels::Parallel* parallel);

  // Around each step, by the caller, who works all the time but for what it waits at the end of a loop.
  void BeginStep(int step);
  void EndStep();

  int threads() const override { return parallel_->threads(); }
  void For(int tasks, absl::FunctionRef<void(int task, int thread)> body) override;

  // Those of a thread in order, thread after thread.
  std::vector<StepSpan> Spans() const;

 private:
  using Clock = std::chrono::steady_clock;

  // Each thread writes to its own. There is room for the spans of a step before it begins: nothing is allocated inside
  // a kernel, whose frames may be oneDNN's, which no exception must cross.
  struct alignas(64) Thread {
    std::vector<StepSpan> spans;
    int64_t loop = -1;  // That the last span is of.
  };

  // `thread` is at work from now on. Where there is no room left, as in its last span.
  void Begin(int thread);

  double Now() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  kernels::Parallel* const parallel_;
  const Clock::time_point start_;
  std::vector<Thread> threads_;
  int step_ = 0;
  int64_t loop_ = 0;
};

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_SPAN_RECORDER_H_

#include "runtime/span_recorder.h"

#include <algorithm>

namespace fuselage::runtime {
namespace {

constexpr size_t kRoom = 256;  // Spans of a thread in a step.

}  // namespace

SpanRecorder::SpanRecorder(kernels::Parallel* parallel)
    : parallel_(parallel), start_(Clock::now()), threads_(parallel->threads()) {}

void SpanRecorder::BeginStep(int step) {
  step_ = step;
  for (Thread& thread : threads_) {
    std::vector<StepSpan>& spans = thread.spans;
    if (spans.capacity() - spans.size() < kRoom) spans.reserve(std::max(2 * spans.size(), spans.size() + kRoom));
  }
  Begin(0);
}

void SpanRecorder::Begin(int thread) {
  std::vector<StepSpan>& spans = threads_[thread].spans;
  const double now = Now();
  if (spans.size() < spans.capacity()) spans.push_back({step_, thread, now, now});
}

void SpanRecorder::EndStep() { threads_[0].spans.back().end = Now(); }

void SpanRecorder::For(int tasks, absl::FunctionRef<void(int task, int thread)> body) {
  if (tasks <= 1 || threads() == 1) return parallel_->For(tasks, body);  // The caller's alone.
  const int64_t loop = ++loop_;
  threads_[0].spans.back().end = Now();  // It may have no task.
  parallel_->For(tasks, [&](int task, int thread) {
    Thread& self = threads_[thread];
    if (thread != 0 && self.loop != loop) Begin(thread);
    self.loop = loop;
    body(task, thread);
    self.spans.back().end = Now();
  });
  Begin(0);
}

std::vector<StepSpan> SpanRecorder::Spans() const {
  std::vector<StepSpan> spans;
  for (const Thread& thread : threads_) spans.insert(spans.end(), thread.spans.begin(), thread.spans.end());
  return spans;
}

}  // namespace fuselage::runtime

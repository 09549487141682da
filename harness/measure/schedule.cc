#include "harness/measure/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr int kRecordedRuns = 5;
constexpr size_t kMostSpans = 20'000;

using runtime::StepSpan;

double Seconds(const StepSpan& span) { return span.end - span.begin; }

double EndOf(const std::vector<StepSpan>& spans) {
  double end = 0;
  for (const StepSpan& span : spans) end = std::max(end, span.end);
  return end;
}

absl::StatusOr<std::vector<StepSpan>> FastestRun(runtime::Executable& executable, absl::Span<const Tensor> inputs) {
  std::vector<Tensor> outputs(executable.output_types().begin(), executable.output_types().end());
  std::vector<Tensor*> output_pointers;
  for (Tensor& output : outputs) output_pointers.push_back(&output);
  std::vector<const Tensor*> input_pointers;
  for (const Tensor& input : inputs) input_pointers.push_back(&input);
  RETURN_IF_ERROR(executable.Run(input_pointers, absl::MakeSpan(output_pointers)));
  std::vector<StepSpan> fastest;
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRecordedRuns; ++run) {
    ASSIGN_OR_RETURN(std::vector<StepSpan> spans,
                     executable.RunRecorded(input_pointers, absl::MakeSpan(output_pointers)));
    const double end = EndOf(spans);
    if (end >= least) continue;
    least = end;
    fastest = std::move(spans);
  }
  return fastest;
}

double Microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }  // The clock counts nanoseconds.

}  // namespace

absl::StatusOr<Results::Schedule> RecordSchedule(runtime::Executable& executable, absl::Span<const Tensor> inputs,
                                                 int threads) {
  ASSIGN_OR_RETURN(std::vector<StepSpan> spans, FastestRun(executable, inputs));
  if (spans.size() > kMostSpans) {
    const auto longer = [](const StepSpan& a, const StepSpan& b) { return Seconds(a) > Seconds(b); };
    std::nth_element(spans.begin(), spans.begin() + kMostSpans, spans.end(), longer);
    spans.resize(kMostSpans);
  }
  Results::Schedule schedule;
  schedule.set_batch(static_cast<int32_t>(inputs.empty() ? 1 : inputs[0].dim(0)));
  schedule.set_threads(threads);
  for (const runtime::StepProfile& profile : executable.profile()) {
    auto& step = *schedule.add_steps();
    step.set_node(profile.node);
    step.set_op(profile.op);
    step.set_kernel(profile.variant);
    for (const int writer : profile.reads) step.add_reads(writer);
  }
  for (const StepSpan& span : spans) {
    schedule.add_span_step(span.step);
    schedule.add_span_thread(span.thread);
    schedule.add_span_begin_us(Microseconds(span.begin));
    schedule.add_span_end_us(Microseconds(span.end));
  }
  schedule.set_arena_bytes(executable.arena_bytes());
  for (const runtime::ArenaBlock& in_arena : executable.arena()) {
    auto& block = *schedule.add_blocks();
    block.set_writer(in_arena.writer);
    block.set_scratch(in_arena.scratch);
    block.set_offset(in_arena.offset);
    block.set_bytes(in_arena.bytes);
    block.set_first(in_arena.first);
    block.set_last(in_arena.last);
  }
  return schedule;
}

}  // namespace fuselage::harness

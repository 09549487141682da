#include "harness/measure/layers.h"

#include <chrono>

#include "harness/base/statistics.h"
#include "ir/base/status.h"
#include "runtime/executable.h"

namespace fuselage::harness {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Runs with the profile on; what each run took.
absl::StatusOr<std::vector<double>> ProfiledRuns(runtime::Executable& executable, absl::Span<const Tensor> inputs,
                                                 int runs) {
  std::vector<Tensor> outputs;
  for (const TensorType& type : executable.output_types()) outputs.emplace_back(type);
  std::vector<Tensor*> pointers;
  for (Tensor& output : outputs) pointers.push_back(&output);
  std::vector<const Tensor*> input_pointers;
  for (const Tensor& input : inputs) input_pointers.push_back(&input);
  RETURN_IF_ERROR(executable.Run(input_pointers, absl::MakeSpan(pointers)));
  executable.ResetProfile();
  executable.EnableProfile(true);
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) {
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(executable.Run(input_pointers, absl::MakeSpan(pointers)));
    seconds.push_back(SecondsSince(start));
  }
  executable.EnableProfile(false);
  return seconds;
}

// The time of a loop whose body is empty.
double SecondsPerJoin(runtime::ThreadPool& pool) {
  constexpr int kLoops = 1000;
  constexpr int kRounds = 5;
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < kLoops; ++i) pool.For(pool.threads(), [](int, int) {});
    seconds.push_back(SecondsSince(start) / kLoops);
  }
  return Summarize(std::move(seconds)).median;
}

}  // namespace

absl::StatusOr<std::vector<Results::Layer>> ProfileLayers(runtime::Executable& executable,
                                                          absl::Span<const Tensor> inputs, int runs) {
  RETURN_IF_ERROR(ProfiledRuns(executable, inputs, runs).status());
  std::vector<Results::Layer> layers;
  for (const runtime::StepProfile& step : executable.profile()) {
    Results::Layer layer;
    layer.set_name(step.node);
    layer.set_op(step.op);
    layer.set_variant(step.variant);
    layer.set_ms(Summarize(step.seconds).median * 1e3);
    layer.set_macs(static_cast<int64_t>(step.macs));
    layer.set_bytes(step.bytes);
    layers.push_back(std::move(layer));
  }
  return layers;
}

absl::StatusOr<double> RuntimeOverheadPercent(runtime::Executable& executable, runtime::ThreadPool& pool,
                                              absl::Span<const Tensor> inputs, int runs) {
  const int64_t joins_before = pool.joins();
  ASSIGN_OR_RETURN(const std::vector<double> seconds, ProfiledRuns(executable, inputs, runs));
  const double joins = static_cast<double>(pool.joins() - joins_before) / (runs + 1);
  const double seconds_in_joins = joins * SecondsPerJoin(pool);
  std::vector<double> percent;
  for (int run = 0; run < runs; ++run) {
    double outside = seconds[run] + seconds_in_joins;
    for (const runtime::StepProfile& step : executable.profile()) outside -= step.seconds[run];
    percent.push_back(100 * outside / seconds[run]);
  }
  return Summarize(std::move(percent)).median;
}

int64_t CountedBytes(const runtime::Executable& executable) {
  int64_t bytes = 0;
  for (const runtime::StepProfile& step : executable.profile()) bytes += step.bytes;
  return bytes;
}

}  // namespace fuselage::harness

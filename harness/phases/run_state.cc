#include "harness/phases/run_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "harness/environment.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

// 0 means all cores; each number once, in order.
std::vector<int> ResolvedThreads(const HarnessConfig::Benchmark& benchmark, int cores) {
  std::vector<int> wanted(benchmark.threads().begin(), benchmark.threads().end());
  if (wanted.empty()) wanted = {1, 0};
  std::vector<int> threads;
  for (int count : wanted) {
    if (count == 0) count = cores;
    if (std::find(threads.begin(), threads.end(), count) == threads.end()) threads.push_back(count);
  }
  return threads;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Graph>> Variant::GraphAt(int64_t batch) const {
  std::unique_ptr<ir::Graph> clone = graph->Clone();
  RETURN_IF_ERROR(clone->SetBatch(batch));
  return clone;
}

RunState::RunState(const RunRequest& request, report::Progress& progress, Recorder& recorder)
    : request(request),
      config(request.config),
      progress(progress),
      recorder(recorder),
      library(request.library != nullptr ? *request.library : compiler::BuiltIn()),
      threads(ResolvedThreads(config.benchmark(), AvailableCores())),
      pool(std::make_unique<runtime::ThreadPool>(*std::max_element(threads.begin(), threads.end()))) {}

void RunState::Warn(const std::string& text) {
  progress.Warn(text);
  recorder.Update([&](Results& results) { *results.add_warnings() = text; });
}

absl::StatusOr<std::unique_ptr<compiler::Engine>> RunState::MakeEngine(const Variant& variant, int64_t batch,
                                                                       runtime::ThreadPool* pool) const {
  auto engine = compiler::MakeEngine(*variant.graph, batch, library.kernels, pool, variant.engine);
  if (!engine.ok()) return Annotate(engine.status(), absl::StrCat("variant ", variant.name()));
  return engine;
}

bool RunState::Uses(absl::string_view backend) const {
  return std::any_of(variants.begin(), variants.end(),
                     [&](const Variant& variant) { return variant.runs() && variant.engine.backend == backend; });
}

int64_t RunState::FirstMeasuredBatch() const {
  const Results results = recorder.Snapshot();
  for (const auto& variant : results.variants()) {
    if (variant.measurements_size() > 0) return variant.measurements(0).batch();
  }
  return 0;
}

int RunState::CalibrationSamples() const {
  const int wanted = config.calibration().images();
  if (config.has_dataset()) return wanted;
  const int samples = static_cast<int>(std::min<int64_t>(calibration_samples->size(), INT32_MAX));
  return wanted > 0 ? std::min(wanted, samples) : samples;
}

SampleRange RunState::EvaluatedSamples() const {
  const auto& evaluation = config.evaluation();
  const int64_t samples =
      evaluation.limit() > 0 ? std::min<int64_t>(inputs->size(), evaluation.limit()) : inputs->size();
  const int64_t shards = std::max(1, evaluation.shards());
  return {samples * evaluation.shard() / shards, samples * (evaluation.shard() + 1) / shards};
}

double RunState::MinTimeMs() const {
  constexpr double kDefault = 500;
  return config.benchmark().min_time_ms() > 0 ? config.benchmark().min_time_ms() : kDefault;
}

}  // namespace fuselage::harness

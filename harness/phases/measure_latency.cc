#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/machine_load.h"
#include "harness/base/statistics.h"
#include "harness/measure/cold_cache.h"
#include "harness/measure/energy.h"
#include "harness/measure/layers.h"
#include "harness/measure/measure.h"
#include "harness/measure/memory_counter.h"
#include "harness/measure/slower_threads.h"
#include "harness/phases/phases.h"
#include "harness/recorder.h"
#include "ir/base/status.h"
#include "passes/core/roofline.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness::phases {
namespace {

constexpr int kDefaultRepetitions = 10;
constexpr int kOverheadRuns = 20;
constexpr int kCountedRuns = 10;
constexpr int kColdRuns = 5;
constexpr int kReferenceRepetitions = 2;  // The interpreter takes seconds for an image.
constexpr double kGramsCo2PerKwh = 480;
constexpr char kCo2Source[] = "the world's mean of 2023 (Ember, Global Electricity Review 2024)";
constexpr double kJoulesPerKwh = 3.6e6;

// A variant in a measurement of all that run.
struct Measured {
  size_t variant;
  std::string backend;
  std::unique_ptr<compiler::Engine> engine;
  std::vector<double> ms;
  std::vector<double> device_ms;  // The same runs without the copies from and to the host; empty: no device.
  std::optional<double> overhead_percent, cold_ms, bytes, predicted_ms, joules;
};

void RecordSamples(const std::vector<double>& ms, Results::Measurement* measurement) {
  for (const double sample : Thinned(ms)) {
    measurement->add_samples_ms(std::round(sample * 1e6) / 1e6);  // The clock counts nanoseconds.
  }
}

// `first` is the baseline, if that is among those that run.
Results::Measurement MeasurementOf(int64_t batch, int threads, const Measured& first, const Measured& one) {
  const Summary summary = Summarize(one.ms);
  Results::Measurement measurement;
  measurement.set_batch(static_cast<int32_t>(batch));
  measurement.set_threads(threads);
  measurement.set_repetitions(static_cast<int32_t>(one.ms.size()));
  *measurement.mutable_latency_ms() = LatencyOf(summary);
  RecordSamples(one.ms, &measurement);
  if (!one.device_ms.empty()) {
    const Summary on_device = Summarize(one.device_ms);
    *measurement.mutable_device_ms() = LatencyOf(on_device);
    measurement.set_device_images_per_second(static_cast<double>(batch) / on_device.median * 1e3);
  }
  measurement.set_images_per_second(static_cast<double>(batch) / summary.median * 1e3);
  measurement.set_peak_memory_bytes(one.engine->arena_bytes() + one.engine->weight_bytes());
  if (one.engine->executable() != nullptr) measurement.set_counted_bytes(CountedBytes(*one.engine->executable()));
  if (one.overhead_percent.has_value()) measurement.set_runtime_overhead_percent(*one.overhead_percent);
  if (one.cold_ms.has_value()) measurement.set_cold_ms(*one.cold_ms);
  if (one.bytes.has_value()) measurement.set_measured_bytes(*one.bytes);
  if (one.predicted_ms.has_value()) measurement.set_predicted_ms(*one.predicted_ms);
  if (first.variant != 0) return measurement;
  if (one.predicted_ms.has_value() && first.predicted_ms.has_value()) {
    measurement.set_predicted_speedup(*first.predicted_ms / *one.predicted_ms);
  }
  if (!first.engine->ReferenceOps().empty()) return measurement;
  measurement.set_speedup(Summarize(first.ms).median / summary.median);
  if ((first.backend == "cuda") != (one.backend == "cuda")) measurement.set_baseline_backend(first.backend);
  return measurement;
}

// The engines at this batch; none where a variant cannot run it, which is a warning.
absl::StatusOr<std::vector<Measured>> Contestants(RunState& run, int64_t batch, runtime::ThreadPool* pool) {
  std::vector<Measured> all;
  for (size_t i = 0; i < run.variants.size(); ++i) {
    if (!run.variants[i].runs()) continue;
    auto engine = run.MakeEngine(run.variants[i], batch, pool);
    if (!engine.ok() && batch > 1 && absl::IsInvalidArgument(engine.status())) {
      run.Warn(absl::StrCat("batch ", batch, " is not measured: ", engine.status().message()));
      return std::vector<Measured>();
    }
    RETURN_IF_ERROR(engine.status());
    all.push_back({i, run.variants[i].engine.backend, *std::move(engine), {}, {}, {}, {}, {}, {}, {}});
  }
  return all;
}

MeasureOptions TurnOptions(RunState& run) {
  const auto& benchmark = run.config.benchmark();
  MeasureOptions options;
  options.warmup = benchmark.warmup();
  options.repetitions = benchmark.repetitions() > 0 ? benchmark.repetitions() : kDefaultRepetitions;
  options.min_time_ms = run.MinTimeMs();
  if (run.Uses("reference")) {
    options.warmup = 0;
    options.repetitions = kReferenceRepetitions;
    options.min_time_ms = 1;
  }
  options.progress = [&run](double fraction) {
    run.progress.Update(static_cast<int64_t>(100 * fraction), 100, "percent");
  };
  return options;
}

absl::Status MeasureMemory(RunState& run, absl::Span<const Tensor> inputs, std::vector<Measured>* all) {
  const auto counter = MemoryCounter::Open();
  run.recorder.Update([&](Results& results) {
    results.mutable_environment()->set_memory_counter(
        counter.ok() ? MemoryCounter::kSource : absl::StrCat("not available here: ", counter.status().message()));
  });
  if (!counter.ok()) return absl::OkStatus();
  for (Measured& one : *all) {
    if (one.backend != "cpu") continue;
    RETURN_IF_ERROR(one.engine->Run(inputs).status());  // Brings in what the others drove out of the caches.
    (*counter)->Start();
    for (int i = 0; i < kCountedRuns; ++i) RETURN_IF_ERROR(one.engine->Run(inputs).status());
    const auto counted = (*counter)->Stop();
    if (counted.ok()) one.bytes = static_cast<double>(*counted) / kCountedRuns;
  }
  return absl::OkStatus();
}

// What a run of each variant on the CPU costs outside the kernels, with cold caches, and in memory traffic.
absl::Status MeasureBeyondLatency(RunState& run, int64_t batch, absl::Span<const Tensor> inputs,
                                  runtime::ThreadPool* pool, std::vector<Measured>* all) {
  std::optional<CacheFlusher> flusher;
  if (run.config.benchmark().cold_cache()) flusher.emplace(pool);
  for (Measured& one : *all) {
    if (one.backend != "cpu") continue;
    ASSIGN_OR_RETURN(one.overhead_percent,
                     RuntimeOverheadPercent(*one.engine->executable(), *pool, inputs, kOverheadRuns));
    if (!flusher.has_value()) continue;
    const auto run_once = [&] { return one.engine->Run(inputs).status(); };
    ASSIGN_OR_RETURN(std::vector<double> ms, ColdRuns(run_once, kColdRuns, &*flusher));
    one.cold_ms = Summarize(std::move(ms)).median;
  }
  if (pool->threads() != 1) return absl::OkStatus();  // The peaks are those of one.
  RETURN_IF_ERROR(MeasureMemory(run, inputs, all));
  for (Measured& one : *all) {
    if (one.backend != "cpu") continue;
    ASSIGN_OR_RETURN(const auto graph, run.variants[one.variant].GraphAt(batch));
    one.predicted_ms = 1e3 * passes::PredictedSeconds(*graph, *run.peaks);
  }
  return absl::OkStatus();
}

double GramsPerKwh(const HarnessConfig::Energy& config) {
  return config.grams_co2_per_kwh() > 0 ? config.grams_co2_per_kwh() : kGramsCo2PerKwh;
}

// What a run of each variant draws, by the counters that this machine has.
absl::Status MeasureEnergy(RunState& run, absl::Span<const Tensor> inputs, std::vector<Measured>* all) {
  if (!run.config.has_energy()) return absl::OkStatus();
  const HarnessConfig::Energy& config = run.config.energy();
  EnergySources sources;
  if (!config.powercap().empty()) sources.powercap = config.powercap();
  auto meter = EnergyMeter::Open(run.Uses("cuda"), sources);
  run.recorder.Update([&](Results& results) {
    auto* environment = results.mutable_environment();
    environment->set_energy_counter(meter.ok() ? meter->Sources()
                                               : absl::StrCat("not available here: ", meter.status().message()));
    environment->set_grams_co2_per_kwh(GramsPerKwh(config));
    environment->set_co2_source(config.grams_co2_per_kwh() > 0 ? "the config" : kCo2Source);
  });
  if (!meter.ok()) return absl::OkStatus();
  for (Measured& one : *all) {
    RETURN_IF_ERROR(one.engine->Run(inputs).status());  // Brings in what the others drove out of the caches.
    RETURN_IF_ERROR(meter->Start());
    const auto start = std::chrono::steady_clock::now();
    int64_t runs = 0;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < kEnergySeconds) {
      RETURN_IF_ERROR(one.engine->Run(inputs).status());
      ++runs;
    }
    ASSIGN_OR_RETURN(const double joules, meter->Joules());
    one.joules = joules / static_cast<double>(runs);
  }
  return absl::OkStatus();
}

absl::Status MeasureBatch(RunState& run, int64_t batch, int threads) {
  run.progress.Begin(absl::StrCat("latency, batch ", batch, ", threads ", threads));
  runtime::ThreadPool pool(threads);
  ASSIGN_OR_RETURN(std::vector<Measured> all, Contestants(run, batch, &pool));
  if (all.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, run.inputs->Batch(0, all[0].engine->input_types()));
  std::vector<Contestant> contestants;
  for (Measured& one : all) {
    Contestant contestant;
    contestant.run = [&one, &inputs] { return one.engine->Run(inputs).status(); };
    contestant.timed = [&one] {
      if (const std::optional<double> ms = one.engine->device_ms()) one.device_ms.push_back(*ms);
    };
    contestants.push_back(std::move(contestant));
  }
  const MachineLoad load;
  RETURN_IF_ERROR(MeasureInTurns(TurnOptions(run), &contestants));
  const std::optional<double> others = load.OtherCores();
  if (others.value_or(0) > kQuietCores) {
    run.Warn(
        absl::StrFormat("batch %d, threads %d: other programs kept %.1f cores busy; these latencies and speedups are "
                        "not to be trusted",
                        batch, threads, *others));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].ms = std::move(contestants[i].ms);
  RETURN_IF_ERROR(MeasureBeyondLatency(run, batch, inputs, &pool, &all));
  RETURN_IF_ERROR(MeasureEnergy(run, inputs, &all));
  for (const Measured& one : all) {
    Results::Measurement measurement = MeasurementOf(batch, threads, all[0], one);
    if (others.has_value()) measurement.set_other_cores_busy(*others);
    if (one.joules.has_value()) {
      measurement.set_joules_per_image(*one.joules / static_cast<double>(batch));
      measurement.set_grams_co2_per_image(measurement.joules_per_image() * GramsPerKwh(run.config.energy()) /
                                          kJoulesPerKwh);
    }
    run.recorder.Update([&](Results& results) {
      *results.mutable_variants(static_cast<int>(one.variant))->add_measurements() = measurement;
    });
  }
  return absl::OkStatus();
}

// More threads that make a network slower make the speedups over it, or its own, say nothing.
void CompareThreads(RunState& run) {
  Results results = run.recorder.Snapshot();
  for (auto& variant : *results.mutable_variants()) {
    for (const std::string& text : MarkSlowerThreads(&variant)) run.Warn(text);
  }
  run.recorder.Update([&](Results& current) { current.mutable_variants()->Swap(results.mutable_variants()); });
}

}  // namespace

absl::Status MeasureLatency(RunState& run) {
  if (run.variants.empty()) return absl::OkStatus();
  std::vector<int> batches(run.config.benchmark().batches().begin(), run.config.benchmark().batches().end());
  if (batches.empty()) batches = {1};
  std::vector<int> threads = run.threads;
  if (run.Uses("reference")) {
    run.Warn("the reference backend is slow: only batch 1 is timed, on one thread, twice");
    batches = {1};
    threads = {1};
  }
  if (!run.Uses("cpu")) threads = {threads[0]};  // Nothing else depends on them.
  for (int batch : batches) {
    for (int count : threads) RETURN_IF_ERROR(MeasureBatch(run, batch, count));
  }
  CompareThreads(run);
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

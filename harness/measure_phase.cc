// Latency and layers of every variant.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/machine_load.h"
#include "harness/base/statistics.h"
#include "harness/measure/cold_cache.h"
#include "harness/measure/layers.h"
#include "harness/measure/measure.h"
#include "harness/measure/memory_counter.h"
#include "harness/measure/slower_threads.h"
#include "harness/session.h"
#include "ir/base/status.h"
#include "passes/core/roofline.h"

namespace fuselage::harness {
namespace {

constexpr int kDefaultRepetitions = 10;
constexpr double kDefaultMinTimeMs = 500;
constexpr int kProfileRuns = 20;
constexpr int kCountedRuns = 10;
constexpr int kColdRuns = 5;
constexpr int kSnrImages = 4;
constexpr int kReferenceRepetitions = 2;  // The interpreter takes seconds for an image.

void SetLatency(const Summary& summary, Results::Latency* latency) {
  latency->set_min(summary.min);
  latency->set_median(summary.median);
  latency->set_mean(summary.mean);
  latency->set_p90(summary.p90);
  latency->set_p99(summary.p99);
}

// 0: none.
int64_t FirstMeasuredBatch(const Results& results) {
  for (const auto& variant : results.variants()) {
    if (variant.measurements_size() > 0) return variant.measurements(0).batch();
  }
  return 0;
}

// The graph that a variant runs at this batch.
absl::StatusOr<std::unique_ptr<ir::Graph>> AtBatch(const ir::Graph& graph, int64_t batch) {
  std::unique_ptr<ir::Graph> clone = graph.Clone();
  RETURN_IF_ERROR(clone->SetBatch(batch));
  return clone;
}

}  // namespace

// A variant in a measurement of all that run.
struct Session::Measured {
  size_t variant;
  std::string backend;
  std::unique_ptr<compiler::Engine> engine;
  std::vector<double> ms;
  std::vector<double> device_ms;  // Of the same runs, without the copies from and to the host; empty: no device.
  std::optional<double> overhead_percent, cold_ms, bytes, predicted_ms;
};

// `first` is the baseline, if that is among those that run.
Results::Measurement Session::MeasurementOf(int64_t batch, int threads, const Measured& first, const Measured& one) {
  const Summary summary = Summarize(one.ms);
  Results::Measurement measurement;
  measurement.set_batch(static_cast<int32_t>(batch));
  measurement.set_threads(threads);
  measurement.set_repetitions(static_cast<int32_t>(one.ms.size()));
  SetLatency(summary, measurement.mutable_latency_ms());
  if (!one.device_ms.empty()) {
    const Summary on_device = Summarize(one.device_ms);
    SetLatency(on_device, measurement.mutable_device_ms());
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

bool Session::uses(absl::string_view backend) const {
  return std::any_of(variants_.begin(), variants_.end(), [&](const Variant& variant) {
    return variant.not_run.empty() && variant.engine.backend == backend;
  });
}

absl::Status Session::MeasureLatency() {
  if (variants_.empty()) return absl::OkStatus();
  std::vector<int> batches(config_.benchmark().batches().begin(), config_.benchmark().batches().end());
  if (batches.empty()) batches = {1};
  std::vector<int> threads = threads_;
  if (uses("reference")) {
    Warn("the reference backend is slow: only batch 1 is timed, on one thread, twice");
    batches = {1};
    threads = {1};
  }
  if (!uses("cpu")) threads = {threads[0]};  // Nothing else depends on them.
  for (int batch : batches) {
    for (int count : threads) RETURN_IF_ERROR(MeasureBatch(batch, count));
  }
  CompareThreads();
  return absl::OkStatus();
}

// More threads that make a network slower make the speedups over it, or its own, say nothing.
void Session::CompareThreads() {
  Results results = recorder_.Snapshot();
  for (auto& variant : *results.mutable_variants()) {
    for (const std::string& text : MarkSlowerThreads(&variant)) Warn(text);
  }
  recorder_.Update([&](Results& current) { current.mutable_variants()->Swap(results.mutable_variants()); });
}

// The engines at this batch; none where a variant cannot run it, which is a warning.
absl::StatusOr<std::vector<Session::Measured>> Session::Contestants(int64_t batch, runtime::ThreadPool* pool) {
  std::vector<Measured> all;
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (!variants_[i].not_run.empty()) continue;
    auto engine = MakeVariantEngine(variants_[i], batch, pool);
    if (!engine.ok() && batch > 1 && absl::IsInvalidArgument(engine.status())) {
      Warn(absl::StrCat("batch ", batch, " is not measured: ", engine.status().message()));
      return std::vector<Measured>();
    }
    RETURN_IF_ERROR(engine.status());
    all.push_back({i, variants_[i].engine.backend, *std::move(engine), {}, {}, {}, {}, {}, {}});
  }
  return all;
}

MeasureOptions Session::TurnOptions() {
  const auto& benchmark = config_.benchmark();
  MeasureOptions options;
  options.warmup = benchmark.warmup();
  options.repetitions = benchmark.repetitions() > 0 ? benchmark.repetitions() : kDefaultRepetitions;
  options.min_time_ms = benchmark.min_time_ms() > 0 ? benchmark.min_time_ms() : kDefaultMinTimeMs;
  if (uses("reference")) {
    options.warmup = 0;
    options.repetitions = kReferenceRepetitions;
    options.min_time_ms = 1;
  }
  options.progress = [this](double fraction) {
    progress_.Update(static_cast<int64_t>(100 * fraction), 100, "percent");
  };
  return options;
}

absl::Status Session::MeasureBatch(int64_t batch, int threads) {
  progress_.Begin(absl::StrCat("latency, batch ", batch, ", threads ", threads));
  runtime::ThreadPool pool(threads);
  ASSIGN_OR_RETURN(std::vector<Measured> all, Contestants(batch, &pool));
  if (all.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, inputs_->Batch(0, all[0].engine->input_types()));
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
  RETURN_IF_ERROR(MeasureInTurns(TurnOptions(), &contestants));
  const std::optional<double> others = load.OtherCores();
  if (others.value_or(0) > kQuietCores) {
    Warn(
        absl::StrFormat("batch %d, threads %d: other programs kept %.1f cores busy; these latencies and speedups are "
                        "not to be trusted",
                        batch, threads, *others));
  }
  for (size_t i = 0; i < all.size(); ++i) all[i].ms = std::move(contestants[i].ms);
  RETURN_IF_ERROR(MeasureBeyondLatency(batch, inputs, &pool, &all));
  for (const Measured& one : all) {
    Results::Measurement measurement = MeasurementOf(batch, threads, all[0], one);
    if (others.has_value()) measurement.set_other_cores_busy(*others);
    recorder_.Update([&](Results& results) {
      *results.mutable_variants(static_cast<int>(one.variant))->add_measurements() = measurement;
    });
  }
  return absl::OkStatus();
}

// Of the variants on the CPU: what a run costs outside the kernels, with cold caches, and in memory traffic.
absl::Status Session::MeasureBeyondLatency(int64_t batch, absl::Span<const Tensor> inputs, runtime::ThreadPool* pool,
                                           std::vector<Measured>* all) {
  std::optional<CacheFlusher> flusher;
  if (config_.benchmark().cold_cache()) flusher.emplace(pool);
  for (Measured& one : *all) {
    if (one.backend != "cpu") continue;
    ASSIGN_OR_RETURN(one.overhead_percent,
                     RuntimeOverheadPercent(*one.engine->executable(), *pool, inputs, kProfileRuns));
    if (!flusher.has_value()) continue;
    const auto run = [&] { return one.engine->Run(inputs).status(); };
    ASSIGN_OR_RETURN(std::vector<double> ms, ColdRuns(run, kColdRuns, &*flusher));
    one.cold_ms = Summarize(std::move(ms)).median;
  }
  if (pool->threads() != 1) return absl::OkStatus();  // The peaks are of one.
  RETURN_IF_ERROR(MeasureMemory(inputs, all));
  for (Measured& one : *all) {
    if (one.backend != "cpu") continue;
    ASSIGN_OR_RETURN(const auto graph, AtBatch(*variants_[one.variant].graph, batch));
    one.predicted_ms = 1e3 * passes::PredictedSeconds(*graph, *peaks_);
  }
  return absl::OkStatus();
}

absl::Status Session::MeasureMemory(absl::Span<const Tensor> inputs, std::vector<Measured>* all) {
  const auto counter = MemoryCounter::Open();
  recorder_.Update([&](Results& results) {
    results.mutable_environment()->set_memory_counter(
        counter.ok() ? MemoryCounter::kSource : absl::StrCat("not available here: ", counter.status().message()));
  });
  if (!counter.ok()) return absl::OkStatus();
  for (Measured& one : *all) {
    if (one.backend != "cpu") continue;
    RETURN_IF_ERROR(one.engine->Run(inputs).status());  // Brings in what the others drove out of the caches.
    (*counter)->Start();
    for (int run = 0; run < kCountedRuns; ++run) RETURN_IF_ERROR(one.engine->Run(inputs).status());
    const auto counted = (*counter)->Stop();
    if (counted.ok()) one.bytes = static_cast<double>(*counted) / kCountedRuns;
  }
  return absl::OkStatus();
}

absl::Status Session::MeasureLayers() {
  const int64_t batch = FirstMeasuredBatch(recorder_.Snapshot());
  if (batch == 0) return absl::OkStatus();
  progress_.Begin("layers");
  runtime::ThreadPool pool(threads_[0]);
  for (size_t i = 0; i < variants_.size(); ++i) {
    const Variant& variant = variants_[i];
    if (!variant.not_run.empty() || variant.engine.backend == "reference") continue;
    progress_.Detail(variant.config->name());
    ASSIGN_OR_RETURN(const auto engine, MakeVariantEngine(variant, batch, &pool));
    ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, inputs_->Batch(0, engine->input_types()));
    ASSIGN_OR_RETURN(std::vector<Results::Layer> layers, ProfileLayers(*engine->executable(), inputs, kProfileRuns));

    std::map<std::string, double> snrs;
    if (i > 0 && BaselineRuns()) {
      std::vector<TensorType> types = engine->input_types();
      for (TensorType& type : types) type.shape[0] = kSnrImages;
      ASSIGN_OR_RETURN(const std::vector<Tensor> samples, inputs_->Batch(0, types));
      auto found = LayerSnrs({*variants_[0].graph, variants_[0].engine}, {*variant.graph, variant.engine}, samples,
                             library_.kernels, pool_.get());
      if (found.ok()) {
        snrs = *std::move(found);
      } else {
        Warn(absl::StrCat("no SNR of the layers of ", variant.config->name(), ": ", found.status().message()));
      }
    }
    ASSIGN_OR_RETURN(const auto graph, AtBatch(*variant.graph, batch));
    recorder_.Update([&](Results& results) {
      for (Results::Layer& layer : layers) {
        const auto snr = snrs.find(layer.name());
        if (snr != snrs.end()) layer.set_snr_db(snr->second);
        if (const ir::Node* node = graph->FindNodeOrNull(layer.name())) {
          const passes::Work work = passes::WorkOf(*node);
          layer.set_operations(work.operations);
          layer.set_operations_per_byte(passes::ArithmeticIntensity(work));
        }
        *results.mutable_variants(static_cast<int>(i))->add_layers() = std::move(layer);
      }
    });
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness

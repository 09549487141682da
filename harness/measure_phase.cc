// Accuracy, latency and layers of every variant.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/machine_load.h"
#include "harness/base/statistics.h"
#include "harness/measure/cold_cache.h"
#include "harness/measure/layers.h"
#include "harness/measure/measure.h"
#include "harness/measure/memory_counter.h"
#include "harness/session.h"
#include "ir/base/status.h"
#include "passes/core/pipeline.h"
#include "passes/core/roofline.h"

namespace fuselage::harness {
namespace {

constexpr int kDefaultBatch = 16;
constexpr int kDefaultRepetitions = 10;
constexpr double kDefaultMinTimeMs = 500;
constexpr int kProfileRuns = 20;
constexpr int kCountedRuns = 10;
constexpr int kColdRuns = 5;
constexpr int kSnrImages = 4;
// The interpreter takes seconds for an image.
constexpr int kReferenceImages = 4;
constexpr int kReferenceRepetitions = 2;

void SetLatency(const Summary& summary, Results::Latency* latency) {
  latency->set_min(summary.min);
  latency->set_median(summary.median);
  latency->set_mean(summary.mean);
  latency->set_p90(summary.p90);
  latency->set_p99(summary.p99);
}

// `device_ms`: without the copies from and to the host; empty where there is no device.
Results::Measurement ToResult(int64_t batch, int threads, Engine& engine, const std::vector<double>& ms,
                              const std::vector<double>& device_ms) {
  const Summary summary = Summarize(ms);
  Results::Measurement measurement;
  measurement.set_batch(static_cast<int32_t>(batch));
  measurement.set_threads(threads);
  measurement.set_repetitions(static_cast<int32_t>(ms.size()));
  SetLatency(summary, measurement.mutable_latency_ms());
  if (!device_ms.empty()) {
    const Summary on_device = Summarize(device_ms);
    SetLatency(on_device, measurement.mutable_device_ms());
    measurement.set_device_images_per_second(static_cast<double>(batch) / on_device.median * 1e3);
  }
  measurement.set_images_per_second(static_cast<double>(batch) / summary.median * 1e3);
  measurement.set_peak_memory_bytes(engine.arena_bytes() + engine.weight_bytes());
  if (engine.executable() != nullptr) measurement.set_counted_bytes(CountedBytes(*engine.executable()));
  return measurement;
}

// The graph that a variant runs at this batch.
absl::StatusOr<std::unique_ptr<ir::Graph>> AtBatch(const ir::Graph& graph, int64_t batch) {
  std::unique_ptr<ir::Graph> clone = graph.Clone();
  RETURN_IF_ERROR(clone->SetBatch(batch));
  return clone;
}

struct Difference {
  double max_abs_error = 0;
  double snr_db = std::numeric_limits<double>::infinity();  // The smallest of any output.
};

// `wanted` and `found` are f32 of the same shapes; NaN differs from all but NaN by infinity.
Difference Compare(const std::vector<Tensor>& wanted, const std::vector<Tensor>& found) {
  Difference difference;
  for (size_t i = 0; i < wanted.size(); ++i) {
    difference.snr_db = std::min(difference.snr_db, passes::SnrDb(wanted[i], found[i]));
    for (int64_t j = 0; j < wanted[i].num_elements(); ++j) {
      const float a = wanted[i].data<float>()[j], b = found[i].data<float>()[j];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double error = std::abs(static_cast<double>(a) - b);
      difference.max_abs_error =
          std::max(difference.max_abs_error, std::isnan(error) ? std::numeric_limits<double>::infinity() : error);
    }
  }
  return difference;
}

}  // namespace

bool Session::uses(absl::string_view backend) const {
  return std::any_of(variants_.begin(), variants_.end(),
                     [&](const Variant& variant) { return variant.engine.backend == backend; });
}

// --backend=cuda means every variant, but FP32 has CUDA kernels only where cuDNN is, and not for every operator: there
// the baseline stays on the CPU, unless it is to be FP16.
absl::Status Session::PlaceBaseline() {
  if (variants_.size() < 2 || variants_[0].engine.backend != "cuda") return absl::OkStatus();
  Variant& baseline = variants_[0];
  if (baseline.config->precision() == "fp16") return absl::OkStatus();
  const auto engine = MakeVariantEngine(baseline, 1, pool_.get());
  if (engine.ok() || !absl::IsUnimplemented(engine.status())) return engine.status();
  baseline.engine.backend = "cpu";
  Warn(absl::StrCat("variant ", baseline.config->name(),
                    " runs on the CPU: it has operators without CUDA kernels (FP32 wants "
                    "cuDNN)"));
  recorder_.Update([&](Results& results) {
    results.mutable_variants(0)->set_backend(baseline.engine.backend);
    results.mutable_variants(0)->set_isa(std::string(kernels::IsaName(baseline.engine.isa)));
  });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Engine>> Session::MakeVariantEngine(const Variant& variant, int64_t batch,
                                                                   runtime::ThreadPool* pool) const {
  auto engine = MakeEngine(*variant.graph, batch, kernels_, pool, variant.engine);
  if (!engine.ok()) return Annotate(engine.status(), absl::StrCat("variant ", variant.config->name()));
  return engine;
}

absl::Status Session::MeasureAccuracy() {
  if (images_ == nullptr) return CompareVariants();
  for (size_t i = 0; i < variants_.size(); ++i) RETURN_IF_ERROR(MeasureVariantAccuracy(i));
  return absl::OkStatus();
}

absl::Status Session::MeasureVariantAccuracy(size_t i) {
  const auto& evaluation = config_.evaluation();
  Variant& variant = variants_[i];
  progress_.Begin(absl::StrCat("accuracy ", variant.config->name()));
  const bool reference = variant.engine.backend == "reference";
  int64_t images = images_->size();
  if (evaluation.limit() > 0) images = std::min<int64_t>(images, evaluation.limit());
  if (reference && images > kReferenceImages) {
    images = kReferenceImages;
    Warn(absl::StrCat("the reference backend is slow: ", variant.config->name(), " sees only ", images, " images"));
  }
  int64_t batch = reference ? 1 : evaluation.batch() > 0 ? evaluation.batch() : kDefaultBatch;
  auto engine = MakeVariantEngine(variant, batch, pool_.get());
  if (!engine.ok() && batch > 1 && absl::IsInvalidArgument(engine.status())) {
    // A Reshape to fixed sizes, for example: such a model runs one image at a time.
    Warn(absl::StrCat("one image at a time: ", engine.status().message()));
    batch = 1;
    engine = MakeVariantEngine(variant, batch, pool_.get());
  }
  RETURN_IF_ERROR(engine.status());
  ASSIGN_OR_RETURN(variant.predictions, Evaluate(**engine, *images_, images,
                                                 [&](int64_t done) { progress_.Update(done, images, "images"); }));
  const double count = static_cast<double>(variant.predictions.top1.size());
  recorder_.Update([&](Results& results) {
    auto* result = results.mutable_variants(static_cast<int>(i));
    result->set_images(static_cast<int64_t>(count));
    result->set_top1(100 * static_cast<double>(variant.predictions.correct1) / count);
    result->set_top5(100 * static_cast<double>(variant.predictions.correct5) / count);
    result->set_agreement_with_fp32(Agreement(variants_[0].predictions, variant.predictions));
    result->set_logits_fingerprint(variant.predictions.fingerprint);
    result->set_weight_bytes((*engine)->weight_bytes());
  });
  return absl::OkStatus();
}

// Without labels: how far the outputs are from the baseline's, sample by sample.
absl::Status Session::CompareVariants() {
  std::vector<Tensor> baseline;
  for (size_t i = 0; i < variants_.size(); ++i) {
    progress_.Begin(absl::StrCat("outputs of ", variants_[i].config->name()));
    ASSIGN_OR_RETURN(const auto engine, MakeVariantEngine(variants_[i], 1, pool_.get()));
    std::vector<Tensor> found;
    for (int64_t sample = 0; sample < inputs_->size(); ++sample) {
      ASSIGN_OR_RETURN(const std::vector<Tensor> batch, inputs_->Batch(sample, engine->input_types()));
      ASSIGN_OR_RETURN(const std::vector<Tensor>* outputs, engine->Run(batch));
      for (const Tensor& output : *outputs) found.push_back(Dequantized(output));
    }
    if (i == 0) baseline = found;
    const Difference difference = Compare(baseline, found);
    recorder_.Update([&](Results& results) {
      auto* result = results.mutable_variants(static_cast<int>(i));
      result->set_max_abs_error(difference.max_abs_error);
      result->set_snr_db(difference.snr_db);
      result->set_weight_bytes(engine->weight_bytes());
    });
  }
  return absl::OkStatus();
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
  return absl::OkStatus();
}

absl::Status Session::MeasureBatch(int64_t batch, int threads) {
  progress_.Begin(absl::StrCat("latency, batch ", batch, ", threads ", threads));
  runtime::ThreadPool pool(threads);
  std::vector<std::unique_ptr<Engine>> engines;
  for (const Variant& variant : variants_) {
    auto engine = MakeVariantEngine(variant, batch, &pool);
    if (!engine.ok() && batch > 1 && absl::IsInvalidArgument(engine.status())) {
      Warn(absl::StrCat("batch ", batch, " is not measured: ", engine.status().message()));
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(engine.status());
    engines.push_back(*std::move(engine));
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, inputs_->Batch(0, engines[0]->input_types()));
  std::vector<Contestant> contestants;
  std::vector<std::vector<double>> device_ms(engines.size());
  for (size_t i = 0; i < engines.size(); ++i) {
    const auto run = [&inputs, &engine = *engines[i], &on_device = device_ms[i]]() -> absl::Status {
      RETURN_IF_ERROR(engine.Run(inputs).status());
      if (const std::optional<double> ms = engine.device_ms()) on_device.push_back(*ms);
      return absl::OkStatus();
    };
    contestants.push_back({run, {}});
  }
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
  options.progress = [&](double fraction) { progress_.Update(static_cast<int64_t>(100 * fraction), 100, "percent"); };
  const MachineLoad load;
  RETURN_IF_ERROR(MeasureInTurns(options, &contestants));
  const std::optional<double> others = load.OtherCores();
  if (others.value_or(0) > kQuietCores) {
    Warn(
        absl::StrFormat("batch %d, threads %d: other programs kept %.1f cores busy; these latencies and speedups are "
                        "not to be trusted",
                        batch, threads, *others));
  }
  std::vector<std::optional<double>> overhead(engines.size()), cold(engines.size());
  std::optional<CacheFlusher> flusher;
  if (benchmark.cold_cache()) flusher.emplace(&pool);
  for (size_t i = 0; i < engines.size(); ++i) {
    if (variants_[i].engine.backend != "cpu") continue;
    ASSIGN_OR_RETURN(overhead[i], RuntimeOverheadPercent(*engines[i]->executable(), pool, inputs, kProfileRuns));
    if (!flusher.has_value()) continue;
    ASSIGN_OR_RETURN(std::vector<double> ms, ColdRuns(contestants[i].run, kColdRuns, &*flusher));
    cold[i] = Summarize(std::move(ms)).median;
  }
  std::vector<std::optional<double>> bytes(engines.size()), predicted(engines.size());
  if (threads == 1) {
    RETURN_IF_ERROR(MeasureMemory(engines, inputs, &bytes));
    for (size_t i = 0; i < engines.size(); ++i) {
      if (variants_[i].engine.backend != "cpu") continue;
      ASSIGN_OR_RETURN(const auto graph, AtBatch(*variants_[i].graph, batch));
      predicted[i] = 1e3 * passes::PredictedSeconds(*graph, *peaks_);
    }
  }

  recorder_.Update([&](Results& results) {
    const double baseline_ms = Summarize(contestants[0].ms).median;
    for (size_t i = 0; i < contestants.size(); ++i) {
      Results::Measurement measurement = ToResult(batch, threads, *engines[i], contestants[i].ms, device_ms[i]);
      measurement.set_speedup(baseline_ms / measurement.latency_ms().median());
      if (others.has_value()) measurement.set_other_cores_busy(*others);
      if (overhead[i].has_value()) measurement.set_runtime_overhead_percent(*overhead[i]);
      if (cold[i].has_value()) measurement.set_cold_ms(*cold[i]);
      if (bytes[i].has_value()) measurement.set_measured_bytes(*bytes[i]);
      if (predicted[i].has_value()) measurement.set_predicted_ms(*predicted[i]);
      if (predicted[i].has_value() && predicted[0].has_value()) {
        measurement.set_predicted_speedup(*predicted[0] / *predicted[i]);
      }
      *results.mutable_variants(static_cast<int>(i))->add_measurements() = measurement;
    }
  });
  return absl::OkStatus();
}

absl::Status Session::MeasureMemory(const std::vector<std::unique_ptr<Engine>>& engines,
                                    absl::Span<const Tensor> inputs, std::vector<std::optional<double>>* bytes) {
  const auto counter = MemoryCounter::Open();
  recorder_.Update([&](Results& results) {
    results.mutable_environment()->set_memory_counter(
        counter.ok() ? MemoryCounter::kSource : absl::StrCat("not available here: ", counter.status().message()));
  });
  if (!counter.ok()) return absl::OkStatus();
  for (size_t i = 0; i < engines.size(); ++i) {
    if (variants_[i].engine.backend != "cpu") continue;
    RETURN_IF_ERROR(engines[i]->Run(inputs).status());  // Brings in what the others drove out of the caches.
    (*counter)->Start();
    for (int run = 0; run < kCountedRuns; ++run) RETURN_IF_ERROR(engines[i]->Run(inputs).status());
    const auto counted = (*counter)->Stop();
    if (counted.ok()) (*bytes)[i] = static_cast<double>(*counted) / kCountedRuns;
  }
  return absl::OkStatus();
}

absl::Status Session::MeasureLayers() {
  if (variants_.empty()) return absl::OkStatus();
  progress_.Begin("layers");
  const int64_t batch = config_.benchmark().batches_size() > 0 ? config_.benchmark().batches(0) : 1;
  runtime::ThreadPool pool(threads_[0]);
  for (size_t i = 0; i < variants_.size(); ++i) {
    const Variant& variant = variants_[i];
    if (variant.engine.backend == "reference") continue;
    progress_.Detail(variant.config->name());
    ASSIGN_OR_RETURN(const auto engine, MakeVariantEngine(variant, batch, &pool));
    ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, inputs_->Batch(0, engine->input_types()));
    ASSIGN_OR_RETURN(std::vector<Results::Layer> layers, ProfileLayers(*engine->executable(), inputs, kProfileRuns));

    std::map<std::string, double> snrs;
    if (i > 0) {
      std::vector<TensorType> types = engine->input_types();
      for (TensorType& type : types) type.shape[0] = kSnrImages;
      ASSIGN_OR_RETURN(const std::vector<Tensor> samples, inputs_->Batch(0, types));
      auto found = LayerSnrs({*variants_[0].graph, variants_[0].engine}, {*variant.graph, variant.engine}, samples,
                             kernels_, pool_.get());
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

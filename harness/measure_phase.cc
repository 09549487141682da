// Accuracy, latency and layers of every variant.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/machine_load.h"
#include "harness/base/statistics.h"
#include "harness/measure/layers.h"
#include "harness/measure/measure.h"
#include "harness/session.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr int kDefaultBatch = 16;
constexpr int kDefaultRepetitions = 10;
constexpr double kDefaultMinTimeMs = 500;
constexpr int kProfileRuns = 20;
constexpr int kSnrImages = 4;
// The interpreter takes seconds for an image.
constexpr int kReferenceImages = 4;
constexpr int kReferenceRepetitions = 2;
// Others that take more of the machine than this make its latencies doubtful.
constexpr double kQuietCores = 0.1;

Results::Measurement ToResult(int64_t batch, int threads, const Engine& engine, const std::vector<double>& ms) {
  const Summary summary = Summarize(ms);
  Results::Measurement measurement;
  measurement.set_batch(static_cast<int32_t>(batch));
  measurement.set_threads(threads);
  measurement.set_repetitions(static_cast<int32_t>(ms.size()));
  auto* latency = measurement.mutable_latency_ms();
  latency->set_min(summary.min);
  latency->set_median(summary.median);
  latency->set_mean(summary.mean);
  latency->set_p90(summary.p90);
  latency->set_p99(summary.p99);
  measurement.set_images_per_second(static_cast<double>(batch) / summary.median * 1e3);
  measurement.set_peak_memory_bytes(engine.arena_bytes() + engine.weight_bytes());
  return measurement;
}

}  // namespace

bool Session::uses_reference() const {
  return std::any_of(variants_.begin(), variants_.end(),
                     [](const Variant& variant) { return variant.engine.backend == "reference"; });
}

absl::StatusOr<std::unique_ptr<Engine>> Session::MakeVariantEngine(const Variant& variant, int64_t batch,
                                                                   runtime::ThreadPool* pool) const {
  auto engine = MakeEngine(*variant.graph, batch, kernels_, pool, variant.engine);
  if (!engine.ok()) return Annotate(engine.status(), absl::StrCat("variant ", variant.config->name()));
  return engine;
}

absl::Status Session::MeasureAccuracy() {
  const auto& evaluation = config_.evaluation();
  for (size_t i = 0; i < variants_.size(); ++i) {
    Variant& variant = variants_[i];
    progress_.Begin(absl::StrCat("accuracy ", variant.config->name()));
    const bool reference = variant.engine.backend == "reference";
    int64_t images = evaluation_samples_->size();
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
    ASSIGN_OR_RETURN(variant.predictions, Evaluate(**engine, *evaluation_samples_, images,
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
  }
  return absl::OkStatus();
}

absl::Status Session::MeasureLatency() {
  std::vector<int> batches(config_.benchmark().batches().begin(), config_.benchmark().batches().end());
  if (batches.empty()) batches = {1};
  std::vector<int> threads = threads_;
  if (uses_reference()) {
    Warn("the reference backend is slow: only batch 1 is timed, on one thread, twice");
    batches = {1};
    threads = {1};
  }
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
  ASSIGN_OR_RETURN(const Tensor input, evaluation_samples_->Batch(0, engines[0]->input_type()));
  std::vector<Contestant> contestants;
  for (const auto& engine : engines) {
    contestants.push_back({[&input, &engine = *engine] { return engine.Run(input).status(); }, {}});
  }
  const auto& benchmark = config_.benchmark();
  MeasureOptions options;
  options.warmup = benchmark.warmup();
  options.repetitions = benchmark.repetitions() > 0 ? benchmark.repetitions() : kDefaultRepetitions;
  options.min_time_ms = benchmark.min_time_ms() > 0 ? benchmark.min_time_ms() : kDefaultMinTimeMs;
  if (uses_reference()) {
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

  recorder_.Update([&](Results& results) {
    const double baseline_ms = Summarize(contestants[0].ms).median;
    for (size_t i = 0; i < contestants.size(); ++i) {
      Results::Measurement measurement = ToResult(batch, threads, *engines[i], contestants[i].ms);
      measurement.set_speedup(baseline_ms / measurement.latency_ms().median());
      if (others.has_value()) measurement.set_other_cores_busy(*others);
      *results.mutable_variants(static_cast<int>(i))->add_measurements() = measurement;
    }
  });
  return absl::OkStatus();
}

absl::Status Session::MeasureLayers() {
  progress_.Begin("layers");
  const int64_t batch = config_.benchmark().batches_size() > 0 ? config_.benchmark().batches(0) : 1;
  runtime::ThreadPool pool(threads_[0]);
  for (size_t i = 0; i < variants_.size(); ++i) {
    const Variant& variant = variants_[i];
    if (variant.engine.backend == "reference") continue;
    progress_.Detail(variant.config->name());
    ASSIGN_OR_RETURN(const auto engine, MakeVariantEngine(variant, batch, &pool));
    ASSIGN_OR_RETURN(const Tensor input, evaluation_samples_->Batch(0, engine->input_type()));
    ASSIGN_OR_RETURN(std::vector<Results::Layer> layers, ProfileLayers(*engine->executable(), input, kProfileRuns));

    std::map<std::string, double> snrs;
    if (i > 0) {
      TensorType type = engine->input_type();
      type.shape[0] = kSnrImages;
      ASSIGN_OR_RETURN(const Tensor images, evaluation_samples_->Batch(0, type));
      auto found = LayerSnrs(*variants_[0].graph, *variant.graph, images, kernels_, pool_.get(), variant.engine);
      if (found.ok()) {
        snrs = *std::move(found);
      } else {
        Warn(absl::StrCat("no SNR of the layers of ", variant.config->name(), ": ", found.status().message()));
      }
    }
    recorder_.Update([&](Results& results) {
      for (Results::Layer& layer : layers) {
        const auto snr = snrs.find(layer.name());
        if (snr != snrs.end()) layer.set_snr_db(snr->second);
        *results.mutable_variants(static_cast<int>(i))->add_layers() = std::move(layer);
      }
    });
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness

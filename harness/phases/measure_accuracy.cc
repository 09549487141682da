#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/measure/accuracy.h"
#include "harness/phases/phases.h"
#include "ir/base/comparison.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {
namespace {

constexpr int kDefaultBatch = 16;
constexpr int kReferenceImages = 4;  // The interpreter takes seconds for an image.

// The same of all variants: what one gets right of four images says nothing beside what another does of a thousand.
int64_t ImagesToSee(RunState& run) {
  const int64_t images = run.EvaluatedSamples();
  if (!run.Uses("reference") || images <= kReferenceImages) return images;
  run.Warn(absl::StrCat("the reference backend is slow: every variant sees only ", kReferenceImages, " images"));
  return kReferenceImages;
}

// What is known of an engine before it runs.
void RecordEngine(RunState& run, size_t i, const compiler::Engine& engine) {
  const Variant& variant = run.variants[i];
  const std::vector<std::string> steps = engine.ReferenceOps();
  run.recorder.Update([&](Results& results) {
    results.mutable_variants(static_cast<int>(i))->set_weight_bytes(engine.weight_bytes());
    results.mutable_variants(static_cast<int>(i))->set_reference_steps(static_cast<int32_t>(steps.size()));
  });
  if (steps.empty() || variant.engine.backend == "reference") return;  // Which says so itself.
  const std::set<std::string> ops(steps.begin(), steps.end());
  run.Warn(absl::StrCat("variant ", variant.name(), ": reference evaluation, which is slow, runs ", steps.size(),
                        " of its steps for want of kernels (", absl::StrJoin(ops, ", "), ")",
                        i == 0 ? "; there are no speedups over it" : ""));
}

absl::StatusOr<Predictions> Predict(RunState& run, size_t i, int64_t images) {
  const auto& evaluation = run.config.evaluation();
  const Variant& variant = run.variants[i];
  run.progress.Begin(absl::StrCat("accuracy ", variant.name()));
  const bool reference = variant.engine.backend == "reference";
  int64_t batch = reference ? 1 : evaluation.batch() > 0 ? evaluation.batch() : kDefaultBatch;
  auto engine = run.MakeEngine(variant, batch, run.pool.get());
  if (!engine.ok() && batch > 1 && absl::IsInvalidArgument(engine.status())) {
    // A Reshape to fixed sizes, for example: such a model runs one image at a time.
    run.Warn(absl::StrCat("one image at a time: ", engine.status().message()));
    batch = 1;
    engine = run.MakeEngine(variant, batch, run.pool.get());
  }
  RETURN_IF_ERROR(engine.status());
  RecordEngine(run, i, **engine);
  ASSIGN_OR_RETURN(Predictions predictions, Evaluate(**engine, *run.images, images, [&](int64_t done) {
                     run.progress.Update(done, images, "images");
                   }));
  const int classes = run.images->dataset().num_classes();
  if (classes > 0 && predictions.classes != classes) {
    run.Warn(absl::StrCat("variant ", variant.name(), ": the network tells ", predictions.classes,
                          " classes apart and the dataset has ", classes,
                          "; top-1 and top-5 mean something only if its class 0 is output 0, and so on"));
  }
  return predictions;
}

// `baseline`: the first variant's, null where it does not run.
void Record(RunState& run, size_t i, const Predictions& predictions, const Predictions* baseline) {
  const double count = static_cast<double>(predictions.top1.size());
  run.recorder.Update([&](Results& results) {
    auto* result = results.mutable_variants(static_cast<int>(i));
    result->set_images(static_cast<int64_t>(count));
    result->set_top1(100 * static_cast<double>(predictions.correct1) / count);
    result->set_top5(100 * static_cast<double>(predictions.correct5) / count);
    if (baseline != nullptr) result->set_agreement_with_fp32(Agreement(*baseline, predictions));
    result->set_logits_fingerprint(predictions.fingerprint);
  });
}

// Without labels: how far the outputs are from the baseline's, sample by sample.
absl::Status CompareVariants(RunState& run) {
  std::vector<Tensor> baseline;
  for (size_t i = 0; i < run.variants.size(); ++i) {
    if (!run.variants[i].runs()) continue;
    run.progress.Begin(absl::StrCat("outputs of ", run.variants[i].name()));
    ASSIGN_OR_RETURN(const auto engine, run.MakeEngine(run.variants[i], 1, run.pool.get()));
    RecordEngine(run, i, *engine);
    if (!run.BaselineRuns()) continue;
    std::vector<Tensor> found;
    for (int64_t sample = 0; sample < run.EvaluatedSamples(); ++sample) {
      ASSIGN_OR_RETURN(const std::vector<Tensor> batch, run.inputs->Batch(sample, engine->input_types()));
      ASSIGN_OR_RETURN(const std::vector<Tensor>* outputs, engine->Run(batch));
      for (const Tensor& output : *outputs) found.push_back(output);
    }
    if (i == 0) baseline = found;
    const Difference difference = Compare(baseline, found);
    run.recorder.Update([&](Results& results) {
      auto* result = results.mutable_variants(static_cast<int>(i));
      result->set_max_abs_error(difference.max_abs_error);
      result->set_snr_db(difference.snr_db);
    });
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureAccuracy(RunState& run) {
  if (run.images == nullptr) return CompareVariants(run);
  const int64_t images = ImagesToSee(run);
  std::optional<Predictions> baseline;
  for (size_t i = 0; i < run.variants.size(); ++i) {
    if (!run.variants[i].runs()) continue;
    ASSIGN_OR_RETURN(Predictions predictions, Predict(run, i, images));
    if (i == 0) baseline = predictions;
    Record(run, i, predictions, baseline.has_value() ? &*baseline : nullptr);
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

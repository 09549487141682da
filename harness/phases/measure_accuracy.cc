#include <algorithm>
#include <memory>
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
constexpr int kReferenceSamples = 4;  // The interpreter takes seconds for an image.

// The same of all variants: what one gets right of four images says nothing beside what another does of a thousand.
SampleRange SamplesToSee(RunState& run) {
  const SampleRange samples = run.EvaluatedSamples();
  if (!run.Uses("reference") || samples.end - samples.first <= kReferenceSamples) return samples;
  run.Warn(absl::StrCat("the reference backend is slow: every variant sees only ", kReferenceSamples, " ",
                        run.evaluation.data->unit(), "s"));
  return {samples.first, samples.first + kReferenceSamples};
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

// `baseline`: the first variant's judge, null where that does not run.
absl::Status JudgeVariant(RunState& run, size_t i, SampleRange samples, datasets::Judge* judge,
                          const datasets::Judge* baseline) {
  const auto& evaluation = run.config.evaluation();
  const Variant& variant = run.variants[i];
  const std::string unit = run.evaluation.data->unit();
  run.progress.Begin(absl::StrCat("accuracy ", variant.name()));
  const bool reference = variant.engine.backend == "reference";
  int64_t batch = reference ? 1 : evaluation.batch() > 0 ? evaluation.batch() : kDefaultBatch;
  auto engine = run.MakeEngine(variant, batch, run.pool.get());
  if (!engine.ok() && batch > 1 && absl::IsInvalidArgument(engine.status())) {
    // A Reshape to fixed sizes, for example: such a model runs one sample at a time.
    run.Warn(absl::StrCat("one ", unit, " at a time: ", engine.status().message()));
    batch = 1;
    engine = run.MakeEngine(variant, batch, run.pool.get());
  }
  RETURN_IF_ERROR(engine.status());
  RecordEngine(run, i, **engine);
  ASSIGN_OR_RETURN(const std::string fingerprint,
                   Evaluate(**engine, *run.inputs, samples, judge, baseline,
                            [&](int64_t done) { run.progress.Update(done, samples.end - samples.first, unit + "s"); }));
  if (const std::string warning = judge->Warning(); !warning.empty()) {
    run.Warn(absl::StrCat("variant ", variant.name(), ": ", warning));
  }
  run.recorder.Update([&](Results& results) {
    auto* result = results.mutable_variants(static_cast<int>(i));
    result->set_images(samples.end - samples.first);
    result->set_logits_fingerprint(fingerprint);
    judge->Record(result);
  });
  return absl::OkStatus();
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
    const SampleRange samples = run.EvaluatedSamples();
    for (int64_t sample = samples.first; sample < samples.end; ++sample) {
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
  if (run.evaluation.data == nullptr) return CompareVariants(run);
  std::unique_ptr<datasets::Judge> baseline = run.evaluation.data->MakeJudge();
  if (baseline == nullptr) return CompareVariants(run);
  const SampleRange samples = SamplesToSee(run);
  if (samples.first == samples.end) {
    return UsageError(absl::StrCat("evaluation.shard: part ", run.config.evaluation().shard(), " of ",
                                   run.config.evaluation().shards(), " has no samples"));
  }
  for (size_t i = 0; i < run.variants.size(); ++i) {
    if (!run.variants[i].runs()) continue;
    const auto judge = i == 0 ? nullptr : run.evaluation.data->MakeJudge();
    RETURN_IF_ERROR(JudgeVariant(run, i, samples, i == 0 ? baseline.get() : judge.get(),
                                 run.BaselineRuns() ? baseline.get() : nullptr));
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

// What the variants compute: accuracy, or how far their outputs are from the baseline's.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/session.h"
#include "ir/base/comparison.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

constexpr int kDefaultBatch = 16;
constexpr int kReferenceImages = 4;  // The interpreter takes seconds for an image.

}  // namespace

// --backend=cuda means every variant, but FP32 has CUDA kernels only where cuDNN is, and not for every operator: there
// the baseline stays on the CPU, unless it is to be FP16.
absl::Status Session::PlaceBaseline() {
  if (variants_.size() < 2 || variants_[0].engine.backend != "cuda" || !BaselineRuns()) return absl::OkStatus();
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

absl::StatusOr<std::unique_ptr<compiler::Engine>> Session::MakeVariantEngine(const Variant& variant, int64_t batch,
                                                                             runtime::ThreadPool* pool) const {
  auto engine = compiler::MakeEngine(*variant.graph, batch, library_.kernels, pool, variant.engine);
  if (!engine.ok()) return Annotate(engine.status(), absl::StrCat("variant ", variant.config->name()));
  return engine;
}

absl::Status Session::MeasureAccuracy() {
  if (images_ == nullptr) return CompareVariants();
  const int64_t images = ImagesToSee();
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (variants_[i].not_run.empty()) RETURN_IF_ERROR(MeasureVariantAccuracy(i, images));
  }
  return absl::OkStatus();
}

int64_t Session::evaluated_samples() const {
  const int limit = config_.evaluation().limit();
  return limit > 0 ? std::min<int64_t>(inputs_->size(), limit) : inputs_->size();
}

// The same of all variants: what one gets right of four images says nothing beside what another does of a thousand.
int64_t Session::ImagesToSee() {
  const int64_t images = evaluated_samples();
  if (!uses("reference") || images <= kReferenceImages) return images;
  Warn(absl::StrCat("the reference backend is slow: every variant sees only ", kReferenceImages, " images"));
  return kReferenceImages;
}

// What is known of an engine before it runs.
void Session::RecordEngine(size_t i, const compiler::Engine& engine) {
  const Variant& variant = variants_[i];
  const std::vector<std::string> steps = engine.ReferenceOps();
  recorder_.Update([&](Results& results) {
    results.mutable_variants(static_cast<int>(i))->set_weight_bytes(engine.weight_bytes());
    results.mutable_variants(static_cast<int>(i))->set_reference_steps(static_cast<int32_t>(steps.size()));
  });
  if (steps.empty() || variant.engine.backend == "reference") return;  // Which says so itself.
  const std::set<std::string> ops(steps.begin(), steps.end());
  Warn(absl::StrCat("variant ", variant.config->name(), ": reference evaluation, which is slow, runs ", steps.size(),
                    " of its steps for want of kernels (", absl::StrJoin(ops, ", "), ")",
                    i == 0 ? "; there are no speedups over it" : ""));
}

absl::Status Session::MeasureVariantAccuracy(size_t i, int64_t images) {
  const auto& evaluation = config_.evaluation();
  Variant& variant = variants_[i];
  progress_.Begin(absl::StrCat("accuracy ", variant.config->name()));
  const bool reference = variant.engine.backend == "reference";
  int64_t batch = reference ? 1 : evaluation.batch() > 0 ? evaluation.batch() : kDefaultBatch;
  auto engine = MakeVariantEngine(variant, batch, pool_.get());
  if (!engine.ok() && batch > 1 && absl::IsInvalidArgument(engine.status())) {
    // A Reshape to fixed sizes, for example: such a model runs one image at a time.
    Warn(absl::StrCat("one image at a time: ", engine.status().message()));
    batch = 1;
    engine = MakeVariantEngine(variant, batch, pool_.get());
  }
  RETURN_IF_ERROR(engine.status());
  RecordEngine(i, **engine);
  ASSIGN_OR_RETURN(variant.predictions, Evaluate(**engine, *images_, images,
                                                 [&](int64_t done) { progress_.Update(done, images, "images"); }));
  const int classes = images_->dataset().num_classes();
  if (classes > 0 && variant.predictions.classes != classes) {
    Warn(absl::StrCat("variant ", variant.config->name(), ": the network tells ", variant.predictions.classes,
                      " classes apart and the dataset has ", classes,
                      "; top-1 and top-5 mean something only if its class 0 is output 0, and so on"));
  }
  const double count = static_cast<double>(variant.predictions.top1.size());
  recorder_.Update([&](Results& results) {
    auto* result = results.mutable_variants(static_cast<int>(i));
    result->set_images(static_cast<int64_t>(count));
    result->set_top1(100 * static_cast<double>(variant.predictions.correct1) / count);
    result->set_top5(100 * static_cast<double>(variant.predictions.correct5) / count);
    if (BaselineRuns()) result->set_agreement_with_fp32(Agreement(variants_[0].predictions, variant.predictions));
    result->set_logits_fingerprint(variant.predictions.fingerprint);
  });
  return absl::OkStatus();
}

// Without labels: how far the outputs are from the baseline's, sample by sample.
absl::Status Session::CompareVariants() {
  std::vector<Tensor> baseline;
  for (size_t i = 0; i < variants_.size(); ++i) {
    if (!variants_[i].not_run.empty()) continue;
    progress_.Begin(absl::StrCat("outputs of ", variants_[i].config->name()));
    ASSIGN_OR_RETURN(const auto engine, MakeVariantEngine(variants_[i], 1, pool_.get()));
    RecordEngine(i, *engine);
    if (!BaselineRuns()) continue;
    std::vector<Tensor> found;
    for (int64_t sample = 0; sample < evaluated_samples(); ++sample) {
      ASSIGN_OR_RETURN(const std::vector<Tensor> batch, inputs_->Batch(sample, engine->input_types()));
      ASSIGN_OR_RETURN(const std::vector<Tensor>* outputs, engine->Run(batch));
      for (const Tensor& output : *outputs) found.push_back(output);
    }
    if (i == 0) baseline = found;
    const Difference difference = Compare(baseline, found);
    recorder_.Update([&](Results& results) {
      auto* result = results.mutable_variants(static_cast<int>(i));
      result->set_max_abs_error(difference.max_abs_error);
      result->set_snr_db(difference.snr_db);
    });
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness

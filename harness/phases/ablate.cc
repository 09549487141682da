#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/phases/candidates.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"
#include "ir/fingerprint.h"

namespace fuselage::harness::phases {
namespace {

using Steps = google::protobuf::RepeatedPtrField<PipelineConfig::Step>;

constexpr int kSnrSamples = 32;

// Takes out the pass number `*index`, counted through fixed points; false: there are fewer, and `*index` is less by
// those that there are.
bool RemovePass(int* index, Steps* steps, PipelineConfig::Step* removed) {
  for (int i = 0; i < steps->size(); ++i) {
    if ((*steps)[i].has_fixed_point()) {
      if (RemovePass(index, (*steps)[i].mutable_fixed_point()->mutable_steps(), removed)) return true;
    } else if ((*index)-- == 0) {
      *removed = (*steps)[i];
      steps->DeleteSubrange(i, 1);
      return true;
    }
  }
  return false;
}

absl::StatusOr<std::string> NameOf(const PipelineConfig::Step& step, const passes::PassRegistry& registry) {
  if (!step.name().empty()) return step.name();
  ASSIGN_OR_RETURN(const auto pass, registry.Create(step.pass(), {}));
  return std::string(pass->name());
}

// A pass, and the network without it; none where that cannot be, or is the same network.
struct Without {
  Results::Ablation::Row row;
  std::optional<Candidate> candidate;
};

absl::StatusOr<std::vector<Without>> CompileWithoutEach(RunState& run, Candidates& candidates, const Candidate& whole) {
  std::vector<Without> all;
  for (int i = 0;; ++i) {
    PipelineConfig pipeline = run.config.pipeline();
    PipelineConfig::Step removed;
    int index = i;
    if (!RemovePass(&index, pipeline.mutable_steps(), &removed)) return all;
    Without& without = all.emplace_back();
    ASSIGN_OR_RETURN(const std::string name, NameOf(removed, run.library.passes));
    without.row.set_pass(name);
    run.progress.Detail(absl::StrCat("without ", name));
    absl::StatusOr<Candidate> candidate = candidates.Compile(*run.imported, pipeline);
    if (!candidate.ok()) {
      without.row.set_why_not(std::string(candidate.status().message()));
    } else if (ir::Fingerprint(*candidate->graph) == ir::Fingerprint(*whole.graph)) {
      without.row.set_same(true);
    } else {
      without.candidate = *std::move(candidate);
    }
  }
}

}  // namespace

absl::Status Ablate(RunState& run) {
  if (!run.config.has_ablation()) return absl::OkStatus();
  run.progress.Begin("ablation");
  ASSIGN_OR_RETURN(const auto candidates, Candidates::Make(run, "ablation"));
  ASSIGN_OR_RETURN(Candidate whole, candidates->Compile(*run.imported, run.config.pipeline()));
  ASSIGN_OR_RETURN(Candidate baseline, candidates->Baseline());
  ASSIGN_OR_RETURN(std::vector<Without> all, CompileWithoutEach(run, *candidates, whole));

  std::vector<Candidate*> timed = {&whole};
  for (Without& without : all) {
    if (without.candidate.has_value()) timed.push_back(&*without.candidate);
  }
  run.progress.Detail("latency");
  RETURN_IF_ERROR(candidates->Time(run.MinTimeMs(), timed));

  JudgedSamples judged = {run.evaluation.data.get(), run.inputs.get(), run.EvaluatedSamples()};
  SampleRange& samples = judged.range;
  if (const int wanted = run.config.ablation().samples(); wanted > 0) {
    samples.end = std::min(samples.end, samples.first + wanted);
  }
  const SampleRange compared = {samples.first, std::min(samples.end, samples.first + kSnrSamples)};
  ASSIGN_OR_RETURN(const std::vector<Tensor> wanted, candidates->Outputs(baseline, *run.inputs, compared));
  const auto measure = [&](Candidate& candidate) -> absl::StatusOr<Results::Candidate> {
    Results::Candidate result = Candidates::ResultOf(candidate);
    ASSIGN_OR_RETURN(const std::vector<Tensor> found, candidates->Outputs(candidate, *run.inputs, compared));
    RecordError(wanted, found, /*logits=*/false, &result);
    RETURN_IF_ERROR(candidates->Judge(candidate, judged, &result));
    return result;
  };

  Results::Ablation ablation;
  ablation.set_variant(candidates->variant().name());
  ablation.set_batch(static_cast<int32_t>(candidates->batch()));
  ablation.set_threads(candidates->threads());
  ablation.set_samples(samples.end - samples.first);
  ASSIGN_OR_RETURN(*ablation.mutable_whole(), measure(whole));
  for (Without& without : all) {
    if (without.candidate.has_value()) {
      ASSIGN_OR_RETURN(*without.row.mutable_without(), measure(*without.candidate));
      *without.row.mutable_gained_ms() = GainOf(whole.ms, without.candidate->ms);
    }
    *ablation.add_rows() = std::move(without.row);
  }
  run.recorder.Update([&](Results& results) { *results.mutable_ablation() = std::move(ablation); });
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

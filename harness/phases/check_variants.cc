#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/exit_code.h"
#include "harness/phases/phases.h"
#include "harness/serving/cores.h"
#include "ir/base/status.h"
#include "ir/base/suggest.h"
#include "kernels/core/isa.h"

namespace fuselage::harness::phases {
namespace {

// The names that `steps` give to graphs.
absl::Status AppendStepNames(const google::protobuf::RepeatedPtrField<PipelineConfig::Step>& steps,
                             const passes::PassRegistry& registry, std::vector<std::string>* names) {
  for (const PipelineConfig::Step& step : steps) {
    if (step.has_fixed_point()) {
      RETURN_IF_ERROR(AppendStepNames(step.fixed_point().steps(), registry, names));
      continue;
    }
    if (!step.has_pass()) return UsageError("pipeline: a step holds neither a pass nor a fixed_point");
    if (!step.name().empty()) {
      names->push_back(step.name());
      continue;
    }
    // A pass that needs what is not known yet (a runner) is made later; here only its name matters.
    const auto pass = registry.Create(step.pass(), {});
    if (!pass.ok()) return UsageError(absl::StrCat("pipeline: ", pass.status().message()));
    names->push_back(std::string((*pass)->name()));
  }
  return absl::OkStatus();
}

absl::Status CheckStepNames(const RunState& run) {
  std::vector<std::string> names = {"input"};
  RETURN_IF_ERROR(AppendStepNames(run.config.pipeline().steps(), run.library.passes, &names));
  for (const auto& variant : run.config.variants()) {
    std::vector<std::string> own;  // Nobody refers to them.
    RETURN_IF_ERROR(Annotate(AppendStepNames(variant.pipeline().steps(), run.library.passes, &own),
                             absl::StrCat("variant ", variant.name())));
    if (variant.after().empty() || std::find(names.begin(), names.end(), variant.after()) != names.end()) continue;
    return UsageError(absl::StrCat("variant ", variant.name(), ": the pipeline has no step \"", variant.after(), "\"",
                                   DidYouMean(variant.after(), names)));
  }
  return absl::OkStatus();
}

// Why variants on CUDA cannot run, which then are not, unless there are no others; empty: they can, or there are none.
absl::StatusOr<std::string> OpenCuda(RunState& run) {
  std::vector<std::string> on_cuda;
  for (const auto& config : run.config.variants()) {
    if (config.backend() == "cuda") on_cuda.push_back(config.name());
  }
  if (on_cuda.empty() || run.request.explain) return std::string();
  auto backend = run.request.open_cuda();
  if (!backend.ok()) {
    const std::string what =
        absl::StrCat(absl::StrJoin(on_cuda, ", "), " cannot run on cuda: ", backend.status().message());
    if (static_cast<int>(on_cuda.size()) == run.config.variants_size()) {
      return UsageError(absl::StrCat(what, "; or use --backend=cpu"));
    }
    run.Warn(absl::StrCat(what, "; the other variants are measured"));
    return std::string(backend.status().message());
  }
  run.cuda = *std::move(backend);
  run.recorder.Update([&](Results& results) {
    results.mutable_environment()->set_gpu(run.cuda->device().name());
    results.mutable_environment()->set_gpu_arch(run.cuda->device().arch());
    results.mutable_environment()->set_cuda_driver(run.cuda->device().driver());
  });
  return std::string();
}

}  // namespace

absl::Status CheckVariants(RunState& run) {
  RETURN_IF_ERROR(CheckStepNames(run));
  const auto& throughput = run.config.throughput();
  for (int streams : throughput.streams()) {
    RETURN_IF_ERROR(serving::CoresOfStreams(std::max(1, streams), std::max(1, throughput.threads())).status());
  }
  ASSIGN_OR_RETURN(const std::string no_cuda, OpenCuda(run));
  for (const auto& config : run.config.variants()) {
    Variant variant;
    variant.config = &config;
    const bool on_cuda = config.backend() == "cuda" && !run.request.explain;
    if (on_cuda) variant.not_run = no_cuda;
    variant.engine.cuda = run.cuda.get();
    if (!config.backend().empty()) variant.engine.backend = config.backend();
    if (config.precision() == "fp16" && variant.engine.backend == "cpu") {
      return UsageError(
          absl::StrCat("variant ", config.name(), ": precision fp16 runs on cuda or reference, not on cpu"));
    }
    if (!config.isa().empty()) {
      const auto isa = kernels::IsaFromName(config.isa());
      if (!isa.ok()) return UsageError(absl::StrCat("variant ", config.name(), ": ", isa.status().message()));
      if (!kernels::CpuSupports(*isa)) {
        return UsageError(absl::StrCat("variant ", config.name(), ": this CPU does not run ", config.isa(),
                                       "; it runs ", kernels::IsaName(kernels::BestIsa())));
      }
      variant.engine.isa = *isa;
    }
    variant.engine.max_memory_bytes = run.request.max_memory_bytes;
    variant.engine.weights = &run.weights;
    if (config.without_bands()) variant.engine.cache_bytes = 0;
    run.variants.push_back(std::move(variant));
    run.recorder.Update([&](Results& results) {
      auto* result = results.add_variants();
      result->set_name(config.name());
      result->set_after(config.after());
      result->set_backend(run.variants.back().engine.backend);
      result->set_not_run(run.variants.back().not_run);
      result->set_optional(config.optional());
      if (!run.variants.back().runs()) return;
      result->set_isa(on_cuda ? run.cuda->device().arch()
                              : std::string(kernels::IsaName(run.variants.back().engine.isa)));
    });
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/engine.h"
#include "harness/explain/explain.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness::phases {
namespace {

using Passes = google::protobuf::RepeatedPtrField<Results::Pass>;

// Those that made the variant's graph: the pipeline's up to `after`, and its own, which are named after it.
Passes PassesOf(const HarnessConfig::VariantConfig& variant, const Passes& all, int of_pipeline) {
  int end = of_pipeline;
  if (!variant.after().empty()) {
    while (end > 0 && all[end - 1].name() != variant.after()) --end;
  }
  Passes passes(all.begin(), all.begin() + end);
  for (int i = of_pipeline; i < all.size(); ++i) {
    if (absl::StartsWith(all[i].name(), absl::StrCat(variant.name(), "/"))) *passes.Add() = all[i];
  }
  return passes;
}

}  // namespace

absl::Status ExplainPasses(RunState& run) {
  run.progress.Begin("explain");
  const Variant* variant = run.variants.empty() ? nullptr : &run.variants.back();
  const ir::Graph& graph = variant == nullptr ? *run.graph : *variant->graph;
  compiler::EngineOptions engine = variant == nullptr ? compiler::EngineOptions() : variant->engine;
  engine.backend = "cpu";  // The interpreter has no schedule to explain, and CUDA's has the same ops.
  runtime::ThreadPool pool(1);
  ASSIGN_OR_RETURN(const auto made, compiler::MakeEngine(graph, /*batch=*/1, run.library.kernels, &pool, engine));
  run.recorder.Update([&](Results& results) {
    const Passes passes = variant == nullptr
                              ? results.passes()
                              : PassesOf(*variant->config, results.passes(), static_cast<int>(run.pass_reports.size()));
    Results::Explanation explanation = Explain(graph, made->executable()->profile(), passes);
    if (variant != nullptr) explanation.set_variant(variant->name());
    *results.mutable_explanation() = std::move(explanation);
  });
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

#include <utility>

#include "compiler/engine.h"
#include "harness/explain/explain.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness::phases {

absl::Status ExplainPasses(RunState& run) {
  run.progress.Begin("explain");
  const Variant* variant = run.variants.empty() ? nullptr : &run.variants.back();
  const ir::Graph& graph = variant == nullptr ? *run.graph : *variant->graph;
  compiler::EngineOptions engine = variant == nullptr ? compiler::EngineOptions() : variant->engine;
  engine.backend = "cpu";  // The interpreter has no schedule to explain, and CUDA's has the same ops.
  runtime::ThreadPool pool(1);
  ASSIGN_OR_RETURN(const auto made, compiler::MakeEngine(graph, /*batch=*/1, run.library.kernels, &pool, engine));
  run.recorder.Update([&](Results& results) {
    Results::Explanation explanation = Explain(graph, made->executable()->profile(), results.passes());
    if (variant != nullptr) explanation.set_variant(variant->name());
    *results.mutable_explanation() = std::move(explanation);
  });
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

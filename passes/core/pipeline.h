// Pipeline: runs passes in order, verifies after each, checks the changed bit, and measures what each did.
#ifndef FUSELAGE_PASSES_CORE_PIPELINE_H_
#define FUSELAGE_PASSES_CORE_PIPELINE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/pass.h"
#include "passes/core/pipeline.pb.h"
#include "passes/core/registry.h"

namespace fuselage::passes {

struct PassReport {
  std::string name;  // The step's name.
  std::string pass;
  bool changed = false;
  int64_t nodes_before = 0, nodes_after = 0;
  int64_t matches = 0;  // Applied remarks.
  double wall_ms = 0;
  // The outputs against those before the pass; only with PipelineOptions::evaluate, and only where it changed.
  std::optional<double> max_abs_error, snr_db;
  std::vector<Remark> remarks;
};

struct PipelineOptions {
  // Runs a graph on the check's sample inputs (the interpreter); null: no numeric check.
  std::function<absl::StatusOr<std::vector<Tensor>>(const ir::Graph&)> evaluate;
  // Called with the graph before the first step (index 0, "input") and after each (1, 2, ...).
  std::function<absl::Status(int index, absl::string_view step, const ir::Graph&)> observe;
  // Called before each pass, for progress.
  std::function<void(absl::string_view step)> progress;
};

// Runs the steps over the graph. After each pass it verifies the graph, compares the `changed` bit with what happened
// and, where it can evaluate, the outputs with the pass's numeric contract. An error begins with the pass's name: its
// own, one of these checks, or a fixed point that does not settle.
absl::StatusOr<std::vector<PassReport>> RunPipeline(const PipelineConfig& config, const PassRegistry& registry,
                                                    const PassEnvironment& environment, ir::Graph& graph,
                                                    const PipelineOptions& options = {});

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_PIPELINE_H_

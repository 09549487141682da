#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "harness/explain/graph_history.h"
#include "harness/explain/graph_table.h"
#include "harness/phases/pass_environment.h"
#include "harness/phases/phases.h"
#include "interpreter/interpreter.h"
#include "ir/base/status.h"
#include "ir/text.h"
#include "passes/core/pipeline.h"
#include "runtime/half_precision.h"

namespace fuselage::harness::phases {
namespace {

constexpr int kGraphRows = 40;  // A longer graph is printed without its middle.

// "03.fusion.ir"
std::string DumpName(int index, absl::string_view step) {
  return absl::StrFormat("%02d.%s.ir", index, absl::StrReplaceAll(ir::SanitizedName(step), {{"/", "_"}}));
}

std::string RemarkText(const passes::Remark& remark) {
  return absl::StrCat(passes::RemarkKindName(remark.kind), remark.node.empty() ? "" : " %", remark.node, ": ",
                      remark.message);
}

// protobuf counts a string that it adds before it allocates it: added empty, then assigned, nothing half-made is
// destroyed.
Results::Pass ToResult(std::string name, const passes::PassReport& report) {
  Results::Pass pass;
  pass.set_name(std::move(name));
  pass.set_changed(report.changed);
  pass.set_nodes_before(report.nodes_before);
  pass.set_nodes_after(report.nodes_after);
  pass.set_matches(report.matches);
  pass.set_wall_ms(report.wall_ms);
  if (report.max_abs_error.has_value()) pass.set_max_abs_error(*report.max_abs_error);
  if (report.snr_db.has_value()) pass.set_snr_db(*report.snr_db);
  for (const passes::Remark& remark : report.remarks) {
    if (remark.kind == passes::RemarkKind::kProcess) continue;
    *pass.add_remarks() = RemarkText(remark);
    auto* decision = pass.add_decisions();
    decision->set_kind(std::string(passes::RemarkKindName(remark.kind)));
    decision->set_node(remark.node);
    decision->set_message(remark.message);
  }
  return pass;
}

// Of this process, not of the run's results: where the cache lies.
void Say(const std::vector<passes::PassReport>& reports, report::Progress& progress) {
  for (const passes::PassReport& report : reports) {
    for (const passes::Remark& remark : report.remarks) {
      if (remark.kind == passes::RemarkKind::kProcess) progress.Say(absl::StrCat(remark.pass, ": ", remark.message));
    }
  }
}

// The outputs for each of the batches, one after another.
absl::StatusOr<std::vector<Tensor>> Interpret(const ir::Graph& graph, const std::vector<std::vector<Tensor>>& batches) {
  std::vector<Tensor> outputs;
  for (const std::vector<Tensor>& inputs : batches) {
    ASSIGN_OR_RETURN(std::vector<Tensor> values, interpreter::Run(graph, inputs));
    for (Tensor& value : values) outputs.push_back(std::move(value));
  }
  return outputs;
}

std::vector<TensorType> InputTypes(const ir::Graph& graph) {
  std::vector<TensorType> types;
  for (const ir::Node* placeholder : graph.placeholders()) types.push_back(placeholder->tensor_type());
  return types;
}

// Made of floats, or within an INT8 kernel.
bool HasCodes(const ir::Graph& graph) {
  const auto is_code = [](const TensorType& type) { return type.dtype == DType::kI8 || type.dtype == DType::kU8; };
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->is_call()) continue;
    const std::vector<TensorType>& types = node->type().elements();
    if (std::any_of(types.begin(), types.end(), is_code) || absl::StartsWith(node->op()->name, "int8.")) return true;
  }
  return false;
}

// One run of the pipeline over the graph.
class PassRun {
 public:
  explicit PassRun(RunState& run) : run_(run) {}
  absl::Status Run();

 private:
  // What follows each step.
  absl::Status ObserveStep(int index, absl::string_view step, const ir::Graph& graph);
  void RecordGraph(absl::string_view step, const ir::Graph& graph);
  void KeepForOnnx(const ir::Graph& graph);
  void Give(Variant& variant, const ir::Graph& graph) const;
  absl::Status RunOwnPipeline(Variant& variant, const passes::PassEnvironment& environment,
                              passes::PipelineOptions options);
  absl::Status FinishVariants(const passes::PassEnvironment& environment, const passes::PipelineOptions& options);

  RunState& run_;
  Results::GraphTable shown_graph_;  // The last that print_graphs recorded, whole.
  GraphHistoryBuilder history_;
  std::shared_ptr<const ir::Graph> float_graph_;  // The last without codes.
};

void PassRun::RecordGraph(absl::string_view step, const ir::Graph& graph) {
  Results::GraphTable table = TableOf(graph, step);
  if (shown_graph_.nodes() > 0) {
    MarkChanges(shown_graph_, &table);
    const bool changed = table.removed_size() > 0 || std::any_of(table.rows().begin(), table.rows().end(),
                                                                 [](const auto& row) { return !row.change().empty(); });
    if (!changed) return;
  }
  shown_graph_ = table;
  run_.recorder.Update([&](Results& results) { *results.add_graphs() = Abridged(std::move(table), kGraphRows); });
}

// The last graph without INT8 kernels is what save_onnx writes.
void PassRun::KeepForOnnx(const ir::Graph& graph) {
  if (run_.config.save_onnx().empty()) return;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->op() != nullptr && absl::StartsWith(node->op()->name, "int8.")) return;
  }
  run_.onnx_graph = graph.Clone();
}

void PassRun::Give(Variant& variant, const ir::Graph& graph) const {
  variant.graph = graph.Clone();
  variant.float_graph = float_graph_;
}

absl::Status PassRun::ObserveStep(int index, absl::string_view step, const ir::Graph& graph) {
  run_.recorder.WriteFile(DumpName(index, step), ir::Print(graph));
  run_.recorder.Update([&](Results& results) { history_.Add(graph, step, results.mutable_history()); });
  if (run_.config.print_graphs()) RecordGraph(step, graph);
  KeepForOnnx(graph);
  if (!HasCodes(graph)) float_graph_ = graph.Clone();
  for (Variant& variant : run_.variants) {
    if (variant.config->after() == step) Give(variant, graph);
  }
  return absl::OkStatus();
}

// Reports of its passes come behind the others', as "int4/quantize"; of its graphs the last is written: "int4.ir".
absl::Status PassRun::RunOwnPipeline(Variant& variant, const passes::PassEnvironment& environment,
                                     passes::PipelineOptions options) {
  options.observe = [&](int, absl::string_view, const ir::Graph& graph) -> absl::Status {
    if (!HasCodes(graph)) variant.float_graph = graph.Clone();
    return absl::OkStatus();
  };
  options.progress = [&](absl::string_view step) {
    run_.progress.Begin(absl::StrCat("pass ", variant.name(), "/", step));
  };
  const auto reports =
      passes::RunPipeline(variant.config->pipeline(), run_.library.passes, environment, *variant.graph, options);
  if (!reports.ok()) return Annotate(reports.status(), absl::StrCat("variant ", variant.name()));
  Say(*reports, run_.progress);
  run_.recorder.WriteFile(absl::StrCat(ir::SanitizedName(variant.name()), ".ir"), ir::Print(*variant.graph));
  run_.recorder.Update([&](Results& results) {
    for (const passes::PassReport& report : *reports) {
      *results.add_passes() = ToResult(absl::StrCat(variant.name(), "/", report.name), report);
    }
  });
  return absl::OkStatus();
}

// Variants of the last graph get it, and all run the passes of their own; those of half precision become what runs.
absl::Status PassRun::FinishVariants(const passes::PassEnvironment& environment,
                                     const passes::PipelineOptions& options) {
  for (Variant& variant : run_.variants) {
    if (variant.config->after().empty()) Give(variant, *run_.graph);
    if (variant.config->has_pipeline()) RETURN_IF_ERROR(RunOwnPipeline(variant, environment, options));
    // The CPU's kernels are explained.
    if (variant.config->precision() != "fp16" || run_.request.explain || !variant.runs()) continue;
    std::vector<std::string> warnings;
    auto half = runtime::HalfPrecision(*variant.graph, &warnings);
    if (!half.ok()) return Annotate(half.status(), absl::StrCat("variant ", variant.name()));
    variant.graph = *std::move(half);
    for (const std::string& warning : warnings) run_.Warn(absl::StrCat("variant ", variant.name(), ": ", warning));
  }
  return absl::OkStatus();
}

absl::Status PassRun::Run() {
  run_.recorder.RemoveEarlierFiles();
  const PassEnvironment environment(run_, run_.request.cache_folder);
  if (run_.config.has_ablation() || run_.config.has_sensitivity() || run_.config.has_search()) {
    run_.imported = run_.graph->Clone();
  }

  passes::PipelineOptions options;
  std::vector<std::vector<Tensor>> batches;
  const int samples = run_.config.numeric_check().samples();
  for (int i = 0; i < samples; ++i) {
    ASSIGN_OR_RETURN(batches.emplace_back(), run_.calibration_samples->Batch(i, InputTypes(*run_.graph)));
  }
  if (samples > 0) options.evaluate = [&](const ir::Graph& graph) { return Interpret(graph, batches); };
  options.progress = [&](absl::string_view step) { run_.progress.Begin(absl::StrCat("pass ", step)); };
  options.observe = [&](int index, absl::string_view step, const ir::Graph& graph) {
    return ObserveStep(index, step, graph);
  };
  ASSIGN_OR_RETURN(run_.pass_reports, passes::RunPipeline(run_.config.pipeline(), run_.library.passes,
                                                          environment.get(), *run_.graph, options));
  Say(run_.pass_reports, run_.progress);
  run_.recorder.Update([&](Results& results) {
    for (const passes::PassReport& report : run_.pass_reports) *results.add_passes() = ToResult(report.name, report);
  });
  return FinishVariants(environment.get(), options);
}

}  // namespace

absl::Status RunPasses(RunState& run) { return PassRun(run).Run(); }

}  // namespace fuselage::harness::phases

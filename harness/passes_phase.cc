// The pipeline, with calibration, numeric checks, IR dumps and tables of the graph; and what came of it, explained.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "compiler/calibration_runner.h"
#include "harness/base/exit_code.h"
#include "harness/explain/graph_table.h"
#include "harness/explain/placement.h"
#include "harness/session.h"
#include "interpreter/interpreter.h"
#include "ir/base/status.h"
#include "ir/text.h"
#include "passes/core/pipeline.h"
#include "runtime/half_precision.h"

namespace fuselage::harness {
namespace {

constexpr int kGraphRows = 40;  // Of a printed graph at most.

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
Results::Pass ToResult(const passes::PassReport& report) {
  Results::Pass pass;
  pass.set_name(report.name);
  pass.set_changed(report.changed);
  pass.set_nodes_before(report.nodes_before);
  pass.set_nodes_after(report.nodes_after);
  pass.set_matches(report.matches);
  pass.set_wall_ms(report.wall_ms);
  if (report.max_abs_error.has_value()) pass.set_max_abs_error(*report.max_abs_error);
  if (report.snr_db.has_value()) pass.set_snr_db(*report.snr_db);
  for (const passes::Remark& remark : report.remarks) {
    *pass.add_remarks() = RemarkText(remark);
    auto* decision = pass.add_decisions();
    decision->set_kind(std::string(passes::RemarkKindName(remark.kind)));
    decision->set_node(remark.node);
    decision->set_message(remark.message);
  }
  return pass;
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

}  // namespace

std::unique_ptr<passes::Runner> Session::MakeRunner() {
  if (calibration_samples_ == nullptr) return nullptr;
  compiler::CalibrationOptions options;
  options.samples = calibration_samples();
  options.max_memory_bytes = request_.max_memory_bytes;
  options.progress = [this](int done) { progress_.Update(done, calibration_samples(), "calibration samples"); };
  return std::make_unique<compiler::CalibrationRunner>(*calibration_samples_, pool_.get(), options);
}

void Session::RecordGraph(absl::string_view step, const ir::Graph& graph) {
  Results::GraphTable table = TableOf(graph, step);
  if (shown_graph_.nodes() > 0) {
    MarkChanges(shown_graph_, &table);
    const bool changed = table.removed_size() > 0 || std::any_of(table.rows().begin(), table.rows().end(),
                                                                 [](const auto& row) { return !row.change().empty(); });
    if (!changed) return;
  }
  shown_graph_ = table;
  recorder_.Update([&](Results& results) { *results.add_graphs() = Abridged(std::move(table), kGraphRows); });
}

absl::Status Session::ObserveStep(int index, absl::string_view step, const ir::Graph& graph) {
  recorder_.WriteFile(DumpName(index, step), ir::Print(graph));
  if (config_.print_graphs()) RecordGraph(step, graph);
  KeepForOnnx(graph);
  for (Variant& variant : variants_) {
    if (variant.config->after() == step) variant.graph = graph.Clone();
  }
  return absl::OkStatus();
}

absl::Status Session::RunPasses() {
  recorder_.RemoveEarlierFiles();
  const std::unique_ptr<passes::Runner> runner = MakeRunner();
  passes::PassEnvironment environment;
  environment.runner = runner.get();
  environment.kernels = &library_.kernels;
  environment.peaks = peaks_.has_value() ? &*peaks_ : nullptr;
  environment.cache_folder = request_.cache_folder;

  passes::PipelineOptions options;
  std::vector<std::vector<Tensor>> batches;
  const int samples = config_.numeric_check().samples();
  for (int i = 0; i < samples; ++i) {
    ASSIGN_OR_RETURN(batches.emplace_back(), calibration_samples_->Batch(i, InputTypes(*graph_)));
  }
  if (samples > 0) options.evaluate = [&](const ir::Graph& graph) { return Interpret(graph, batches); };
  options.progress = [&](absl::string_view step) { progress_.Begin(absl::StrCat("pass ", step)); };
  options.observe = [&](int index, absl::string_view step, const ir::Graph& graph) {
    return ObserveStep(index, step, graph);
  };
  ASSIGN_OR_RETURN(const std::vector<passes::PassReport> reports,
                   passes::RunPipeline(config_.pipeline(), library_.passes, environment, *graph_, options));
  recorder_.Update([&](Results& results) {
    for (const passes::PassReport& report : reports) *results.add_passes() = ToResult(report);
  });
  for (Variant& variant : variants_) {
    if (variant.config->after().empty()) variant.graph = graph_->Clone();
    // The CPU's kernels are explained.
    if (variant.config->precision() != "fp16" || request_.explain || !variant.not_run.empty()) continue;
    std::vector<std::string> warnings;
    auto half = runtime::HalfPrecision(*variant.graph, &warnings);
    if (!half.ok()) return Annotate(half.status(), absl::StrCat("variant ", variant.config->name()));
    variant.graph = *std::move(half);
    for (const std::string& warning : warnings) Warn(absl::StrCat("variant ", variant.config->name(), ": ", warning));
  }
  return absl::OkStatus();
}

absl::Status Session::ExplainPasses() {
  progress_.Begin("explain");
  const Variant* variant = variants_.empty() ? nullptr : &variants_.back();
  const ir::Graph& graph = variant == nullptr ? *graph_ : *variant->graph;
  compiler::EngineOptions engine = variant == nullptr ? compiler::EngineOptions() : variant->engine;
  engine.backend = "cpu";  // The interpreter has no schedule to explain, and CUDA's has the same ops.
  runtime::ThreadPool pool(1);
  ASSIGN_OR_RETURN(const auto made, compiler::MakeEngine(graph, /*batch=*/1, library_.kernels, &pool, engine));
  recorder_.Update([&](Results& results) {
    Results::Explanation explanation = Explain(graph, made->executable()->profile(), results.passes());
    if (variant != nullptr) explanation.set_variant(variant->config->name());
    *results.mutable_explanation() = std::move(explanation);
  });
  return absl::OkStatus();
}

}  // namespace fuselage::harness

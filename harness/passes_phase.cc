// The pipeline, with calibration, numeric checks and IR dumps.
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "harness/base/exit_code.h"
#include "harness/measure/calibration_runner.h"
#include "harness/session.h"
#include "interpreter/interpreter.h"
#include "ir/base/status.h"
#include "ir/text.h"
#include "passes/core/pipeline.h"

namespace fuselage::harness {
namespace {

// "03.fusion.ir"
std::string DumpName(int index, absl::string_view step) {
  return absl::StrFormat("%02d.%s.ir", index, absl::StrReplaceAll(ir::SanitizedName(step), {{"/", "_"}}));
}

// Dumps of an earlier run, which may have had more passes.
void RemoveDumps(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> dumps;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() > 6 && absl::ascii_isdigit(name[0]) && absl::ascii_isdigit(name[1]) && name[2] == '.' &&
        absl::EndsWith(name, ".ir")) {
      dumps.push_back(it->path());
    }
  }
  for (const auto& dump : dumps) std::filesystem::remove(dump, error);
}

std::string RemarkText(const passes::Remark& remark) {
  return absl::StrCat(passes::RemarkKindName(remark.kind), remark.node.empty() ? "" : " %", remark.node, ": ",
                      remark.message);
}

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
  for (const passes::Remark& remark : report.remarks) pass.add_remarks(RemarkText(remark));
  return pass;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> Session::Interpret(const ir::Graph& graph,
                                                       const std::vector<Tensor>& inputs) const {
  std::vector<Tensor> outputs;
  for (const Tensor& input : inputs) {
    ASSIGN_OR_RETURN(std::vector<Tensor> values, interpreter::Run(graph, absl::MakeConstSpan(&input, 1)));
    for (Tensor& value : values) outputs.push_back(std::move(value));
  }
  return outputs;
}

absl::Status Session::ObserveStep(int index, absl::string_view step, const ir::Graph& graph) {
  recorder_.WriteFile(DumpName(index, step), ir::Print(graph));
  for (Variant& variant : variants_) {
    if (variant.config->after() == step) variant.graph = graph.Clone();
  }
  return absl::OkStatus();
}

absl::Status Session::RunPasses() {
  RemoveDumps(recorder_.folder());
  std::unique_ptr<CalibrationRunner> runner;
  passes::PassEnvironment environment;
  environment.kernels = &kernels_;
  if (calibration_samples_.has_value()) {
    CalibrationOptions options;
    options.images = config_.calibration().images();
    options.max_memory_bytes = request_.max_memory_bytes;
    options.progress = [&](int done) { progress_.Update(done, config_.calibration().images(), "calibration images"); };
    runner = std::make_unique<CalibrationRunner>(*calibration_samples_, kernels_, pool_.get(), options);
    environment.runner = runner.get();
  }

  passes::PipelineOptions options;
  std::vector<Tensor> inputs;
  const int samples = config_.numeric_check().samples();
  for (int i = 0; i < samples; ++i) {
    ASSIGN_OR_RETURN(Tensor input, calibration_samples_->Batch(i, graph_->placeholders()[0]->tensor_type()));
    inputs.push_back(std::move(input));
  }
  if (samples > 0) options.evaluate = [&](const ir::Graph& graph) { return Interpret(graph, inputs); };
  options.progress = [&](absl::string_view step) { progress_.Begin(absl::StrCat("pass ", step)); };
  options.observe = [&](int index, absl::string_view step, const ir::Graph& graph) {
    return ObserveStep(index, step, graph);
  };
  ASSIGN_OR_RETURN(const std::vector<passes::PassReport> reports,
                   passes::RunPipeline(config_.pipeline(), passes_, environment, *graph_, options));
  recorder_.Update([&](Results& results) {
    for (const passes::PassReport& report : reports) *results.add_passes() = ToResult(report);
  });
  for (Variant& variant : variants_) {
    if (variant.config->after().empty()) variant.graph = graph_->Clone();
  }
  return absl::OkStatus();
}

}  // namespace fuselage::harness

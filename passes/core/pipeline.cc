#include "passes/core/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fuselage::passes {
namespace {

constexpr int kDefaultMaxRounds = 10;
constexpr double kOneCodeSnrDb = 30;

class PipelineRun {
 public:
  PipelineRun(const PassRegistry& registry, const PassEnvironment& environment, ir::Graph& graph,
              const PipelineOptions& options)
      : registry_(registry), environment_(environment), graph_(graph), options_(options) {}

  absl::Status Begin() {
    RETURN_IF_ERROR(graph_.Verify(&fingerprint_));
    if (options_.observe) RETURN_IF_ERROR(options_.observe(index_++, "input", graph_));
    return absl::OkStatus();
  }

  // True: one of the steps changed the graph.
  absl::StatusOr<bool> RunSteps(const google::protobuf::RepeatedPtrField<PipelineConfig::Step>& steps) {
    bool any_changed = false;
    for (const PipelineConfig::Step& step : steps) {
      absl::StatusOr<bool> changed = false;
      switch (step.kind_case()) {
        case PipelineConfig::Step::kPass: changed = RunPass(step); break;
        case PipelineConfig::Step::kFixedPoint: changed = RunFixedPoint(step.fixed_point()); break;
        default: return absl::InvalidArgumentError("pipeline: a step holds neither a pass nor a fixed_point");
      }
      RETURN_IF_ERROR(changed.status());
      any_changed = any_changed || *changed;
    }
    return any_changed;
  }

  std::vector<PassReport> TakeReports() { return std::move(reports_); }

 private:
  absl::StatusOr<bool> RunFixedPoint(const PipelineConfig::FixedPoint& config) {
    const int rounds = config.max_rounds() > 0 ? config.max_rounds() : kDefaultMaxRounds;
    bool any_changed = false;
    for (int round = 0; round < rounds; ++round) {
      ASSIGN_OR_RETURN(const bool changed, RunSteps(config.steps()));
      if (!changed) return any_changed;
      any_changed = true;
    }
    return absl::InternalError(absl::StrCat("pipeline: a fixed_point still changes after ", rounds, " rounds"));
  }

  absl::StatusOr<bool> RunPass(const PipelineConfig::Step& step) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Pass> pass, registry_.Create(step.pass(), environment_));
    const std::string name = step.name().empty() ? std::string(pass->name()) : step.name();
    if (options_.progress) options_.progress(name);
    if (options_.evaluate && outputs_.empty()) {
      ASSIGN_OR_RETURN(outputs_, options_.evaluate(graph_));
    }
    PassReport report;
    report.name = name;
    report.pass = std::string(pass->name());
    report.nodes_before = graph_.num_nodes();

    Remarks remarks;
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(report.changed, pass->Run(graph_, remarks));
    report.wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();

    const uint64_t before = fingerprint_;
    RETURN_IF_ERROR(Annotate(graph_.Verify(&fingerprint_), absl::StrCat("after ", name)));
    if ((fingerprint_ != before) != report.changed) {
      return absl::InternalError(absl::StrCat(name, ": says changed=", report.changed, ", but the graph's text ",
                                              report.changed ? "is the same" : "differs"));
    }
    report.nodes_after = graph_.num_nodes();
    report.matches = remarks.CountApplied();
    report.remarks = remarks.Take();
    if (options_.evaluate && report.changed) {
      absl::Status status = CheckNumerically(pass->numeric_contract(), report);
      if (!status.ok()) return Annotate(status, name);
    }
    if (options_.observe) RETURN_IF_ERROR(options_.observe(index_++, name, graph_));
    reports_.push_back(std::move(report));
    return reports_.back().changed;
  }

  absl::Status CheckNumerically(const NumericContract& contract, PassReport& report) {
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs, options_.evaluate(graph_));
    if (outputs.size() != outputs_.size()) return absl::InternalError("the number of outputs changed");
    double max_error = 0, max_output = 0, snr_db = std::numeric_limits<double>::infinity();
    bool same_bits = true;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor before = Dequantized(outputs_[i]), after = Dequantized(outputs[i]);
      if (before.shape() != after.shape()) return absl::InternalError(absl::StrCat("output ", i, " changed its shape"));
      same_bits = same_bits && outputs_[i].SameBytes(outputs[i]);
      for (int64_t k = 0; k < before.num_elements(); ++k) {
        max_error = std::max(max_error, std::fabs(after.At(k) - before.At(k)));
        max_output = std::max(max_output, std::fabs(before.At(k)));
      }
      snr_db = std::min(snr_db, SnrDb(before, after));
    }
    report.max_abs_error = max_error;
    report.snr_db = snr_db;
    outputs_ = std::move(outputs);
    switch (contract.kind) {
      case NumericContract::kBitExact:
        if (!same_bits) {
          return absl::InternalError(
              absl::StrFormat("must not change a bit, but outputs moved by up to %g", max_error));
        }
        break;
      case NumericContract::kTolerance:
        if (!(max_error <= contract.tolerance * max_output)) {
          return absl::InternalError(absl::StrFormat("outputs of up to %g moved by up to %g, allowed is %g relative",
                                                     max_output, max_error, contract.tolerance));
        }
        break;
      case NumericContract::kOneCode:
        if (!(snr_db >= kOneCodeSnrDb)) {
          return absl::InternalError(
              absl::StrFormat("outputs have an SNR of %.1f dB, wanted at least %.0f", snr_db, kOneCodeSnrDb));
        }
        break;
      case NumericContract::kQuantizes: break;
    }
    return absl::OkStatus();
  }

  const PassRegistry& registry_;
  const PassEnvironment& environment_;
  ir::Graph& graph_;
  const PipelineOptions& options_;
  int index_ = 0;
  uint64_t fingerprint_ = 0;     // Of the graph as the last pass left it.
  std::vector<Tensor> outputs_;  // Of the graph before the current pass.
  std::vector<PassReport> reports_;
};

}  // namespace

absl::StatusOr<std::vector<PassReport>> RunPipeline(const PipelineConfig& config, const PassRegistry& registry,
                                                    const PassEnvironment& environment, ir::Graph& graph,
                                                    const PipelineOptions& options) {
  PipelineRun run(registry, environment, graph, options);
  RETURN_IF_ERROR(run.Begin());
  RETURN_IF_ERROR(run.RunSteps(config.steps()).status());
  return run.TakeReports();
}

double SnrDb(const Tensor& reference, const Tensor& test) {
  FUSELAGE_CHECK(reference.num_elements() == test.num_elements());
  double squares = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  for (int64_t i = 0; i < reference.num_elements(); ++i) {
    const double o = reference.At(i), difference = o - test.At(i);
    squares += difference * difference;
    low = std::min(low, o);
    high = std::max(high, o);
  }
  if (squares == 0) return std::numeric_limits<double>::infinity();
  return -20 * std::log10(std::sqrt(squares / static_cast<double>(reference.num_elements())) / (high - low));
}

}  // namespace fuselage::passes

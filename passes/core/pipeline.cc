#include "passes/core/pipeline.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/comparison.h"

namespace fuselage::passes {
namespace {

constexpr int kDefaultMaxRounds = 10;
constexpr double kOneCodeSnrDb = 30;
constexpr double kBelowQuantizedDb = 3;

using Steps = google::protobuf::RepeatedPtrField<PipelineConfig::Step>;

// Profiles what the steps that are still to come make of the graphs.
class RestOfPipeline : public Profiler {
 public:
  RestOfPipeline(const Steps& steps, const PassRegistry& registry, const PassEnvironment& environment)
      : registry_(registry), environment_(environment), profiler_(environment.profiler) {
    *config_.mutable_steps() = steps;
    environment_.profiler = nullptr;
  }

  absl::StatusOr<std::vector<std::vector<Call>>> Profile(absl::Span<const ir::Graph* const> graphs) override {
    std::vector<std::unique_ptr<ir::Graph>> copies;
    std::vector<const ir::Graph*> results;
    for (const ir::Graph* graph : graphs) {
      copies.push_back(graph->Clone());
      results.push_back(copies.back().get());
      RETURN_IF_ERROR(RunPipeline(config_, registry_, environment_, *copies.back()).status());
    }
    return profiler_->Profile(results);
  }

 private:
  PipelineConfig config_;
  const PassRegistry& registry_;
  PassEnvironment environment_;
  Profiler* const profiler_;
};

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

  // True: one of the steps changed the graph. `after`: what follows them.
  absl::StatusOr<bool> RunSteps(const Steps& steps, const Steps& after) {
    bool any_changed = false;
    for (int i = 0; i < steps.size(); ++i) {
      const PipelineConfig::Step& step = steps[i];
      Steps rest(steps.begin() + i + 1, steps.end());
      rest.MergeFrom(after);
      absl::StatusOr<bool> changed = false;
      switch (step.kind_case()) {
        case PipelineConfig::Step::kPass: changed = RunPass(step, rest); break;
        case PipelineConfig::Step::kFixedPoint: changed = RunFixedPoint(step.fixed_point(), rest); break;
        default: return absl::InvalidArgumentError("pipeline: a step holds neither a pass nor a fixed_point");
      }
      RETURN_IF_ERROR(changed.status());
      any_changed = any_changed || *changed;
    }
    return any_changed;
  }

  std::vector<PassReport> TakeReports() { return std::move(reports_); }

 private:
  absl::StatusOr<bool> RunFixedPoint(const PipelineConfig::FixedPoint& config, const Steps& after) {
    const int rounds = config.max_rounds() > 0 ? config.max_rounds() : kDefaultMaxRounds;
    bool any_changed = false;
    for (int round = 0; round < rounds; ++round) {
      ASSIGN_OR_RETURN(const bool changed, RunSteps(config.steps(), after));
      if (!changed) return any_changed;
      any_changed = true;
    }
    return UsageError(absl::StrCat("pipeline: a fixed_point still changes after ", rounds, " rounds (max_rounds)"));
  }

  absl::StatusOr<bool> RunPass(const PipelineConfig::Step& step, const Steps& after) {
    RestOfPipeline rest(after, registry_, environment_);
    PassEnvironment environment = environment_;
    if (environment.profiler != nullptr) environment.profiler = &rest;
    ASSIGN_OR_RETURN(const std::unique_ptr<Pass> pass, registry_.Create(step.pass(), environment));
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
      const NumericContract contract = pass->numeric_contract();
      absl::Status status = CheckNumerically(contract, report);
      if (absl::IsInternal(status) && contract.of_config) status = UsageError(status.message());
      if (!status.ok()) return Annotate(status, name);
    }
    if (options_.observe) RETURN_IF_ERROR(options_.observe(index_++, name, graph_));
    reports_.push_back(std::move(report));
    return reports_.back().changed;
  }

  absl::Status CheckNumerically(const NumericContract& contract, PassReport& report) {
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs, options_.evaluate(graph_));
    if (outputs.size() != outputs_.size()) return absl::InternalError("the number of outputs changed");
    bool same_bits = true;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs_[i].shape() != outputs[i].shape()) {
        return absl::InternalError(absl::StrCat("output ", i, " changed its shape"));
      }
      same_bits = same_bits && outputs_[i].SameBytes(outputs[i]);
    }
    const Difference difference = Compare(outputs_, outputs);
    report.max_abs_error = difference.max_abs_error;
    report.snr_db = difference.snr_db;
    outputs_ = std::move(outputs);
    switch (contract.kind) {
      case NumericContract::kBitExact:
        if (!same_bits) {
          return absl::InternalError(
              absl::StrFormat("must not change a bit, but outputs moved by up to %g", difference.max_abs_error));
        }
        break;
      case NumericContract::kTolerance:
        if (!(difference.max_abs_error <= contract.tolerance * difference.magnitude)) {
          return absl::InternalError(absl::StrFormat("outputs of up to %g moved by up to %g, allowed is %g relative",
                                                     difference.magnitude, difference.max_abs_error,
                                                     contract.tolerance));
        }
        break;
      case NumericContract::kOneCode: {
        // A network that makes much of half a code makes as much of one: no more than that is wanted of it.
        const double wanted = std::min(kOneCodeSnrDb, quantized_snr_db_ - kBelowQuantizedDb);
        if (!(difference.snr_db >= wanted)) {
          return absl::InternalError(
              absl::StrFormat("outputs have an SNR of %.1f dB, wanted at least %.0f", difference.snr_db, wanted));
        }
        break;
      }
      case NumericContract::kQuantizes:
        quantized_snr_db_ = std::min(quantized_snr_db_, difference.snr_db);
        if (difference.lost > 0) {
          return absl::InternalError(absl::StrCat(difference.lost, " finite values became NaN or infinite"));
        }
        break;
    }
    return absl::OkStatus();
  }

  const PassRegistry& registry_;
  const PassEnvironment& environment_;
  ir::Graph& graph_;
  const PipelineOptions& options_;
  int index_ = 0;
  uint64_t fingerprint_ = 0;     // The graph's, as the last pass left it.
  std::vector<Tensor> outputs_;  // What the graph before the current pass computes.
  double quantized_snr_db_ = std::numeric_limits<double>::infinity();  // The least that passes of kQuantizes left.
  std::vector<PassReport> reports_;
};

}  // namespace

absl::StatusOr<std::vector<PassReport>> RunPipeline(const PipelineConfig& config, const PassRegistry& registry,
                                                    const PassEnvironment& environment, ir::Graph& graph,
                                                    const PipelineOptions& options) {
  PipelineRun run(registry, environment, graph, options);
  RETURN_IF_ERROR(run.Begin());
  RETURN_IF_ERROR(run.RunSteps(config.steps(), {}).status());
  return run.TakeReports();
}

}  // namespace fuselage::passes

#include "harness/phases/quantized_pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/exit_code.h"
#include "ir/base/status.h"
#include "passes/core/roofline.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::harness::phases {
namespace {

bool IsQuantize(const PipelineConfig::Step& step) { return step.has_pass() && step.pass().Is<QuantizeOptions>(); }

}  // namespace

absl::StatusOr<QuantizedPipeline> QuantizedPipeline::Make(RunState& run, Candidates& candidates,
                                                          absl::string_view what) {
  QuantizedPipeline pipeline;
  pipeline.candidates_ = &candidates;
  PipelineConfig before;
  int quantizes = 0;
  for (const PipelineConfig::Step& step : run.config.pipeline().steps()) {
    quantizes += IsQuantize(step);
    *(quantizes > 0 ? pipeline.rest_ : before).add_steps() = step;
  }
  if (quantizes != 1) {
    return UsageError(absl::StrCat(what, " wants one step of the pipeline with QuantizeOptions, outside any ",
                                   "fixed_point; found ", quantizes));
  }
  ASSIGN_OR_RETURN(Candidate candidate, candidates.Compile(*run.imported, before));
  pipeline.float_graph_ = std::move(candidate.graph);
  return pipeline;
}

absl::StatusOr<Candidate> QuantizedPipeline::Int8() {
  ASSIGN_OR_RETURN(Candidate candidate, candidates_->Compile(*float_graph_, rest_));
  layers_.clear();
  for (const passes::Remark& remark : candidate.reports[0].remarks) {
    if (remark.kind == passes::RemarkKind::kApplied) layers_.push_back(remark.node);
  }
  return candidate;
}

double QuantizedPipeline::OperationsOf(const std::string& layer) const {
  const ir::Node* node = float_graph_->FindNodeOrNull(layer);
  return node == nullptr ? 0 : passes::WorkOf(*node).operations;
}

absl::StatusOr<Candidate> QuantizedPipeline::Without(const std::vector<std::string>& layers) {
  PipelineConfig pipeline = rest_;
  QuantizeOptions options;
  pipeline.steps(0).pass().UnpackTo(&options);
  for (const std::string& layer : layers) options.add_skip(layer);
  pipeline.mutable_steps(0)->mutable_pass()->PackFrom(options);
  return candidates_->Compile(*float_graph_, pipeline);
}

absl::StatusOr<Candidate> QuantizedPipeline::Only(const std::vector<std::string>& layers) {
  const HashSet<std::string> kept(layers.begin(), layers.end());
  std::vector<std::string> others;
  for (const std::string& layer : layers_) {
    if (!kept.contains(layer)) others.push_back(layer);
  }
  return Without(others);
}

}  // namespace fuselage::harness::phases

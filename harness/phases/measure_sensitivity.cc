#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "harness/base/exit_code.h"
#include "harness/phases/candidates.h"
#include "harness/phases/phases.h"
#include "harness/phases/quantized_pipeline.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {
namespace {

constexpr int kDefaultSamples = 32;
constexpr int kDefaultMost = 200;
constexpr double kDefaultMinTimeMs = 100;
constexpr size_t kRound = 8;  // Groups whose networks are in memory together, and take turns.

// The first parts of a name, which slashes or, where there are none, points divide.
std::string PrefixOf(const std::string& name, int depth) {
  const char* separator = absl::StrContains(name, "/") ? "/" : ".";
  std::vector<std::string> parts = absl::StrSplit(name, separator, absl::SkipEmpty());
  if (static_cast<int>(parts.size()) > depth) parts.resize(depth);
  return absl::StrJoin(parts, separator);
}

struct Group {
  std::string name;
  std::vector<std::string> layers;
  double operations = 0;
};

// In the order of their first layers.
std::vector<Group> GroupsOf(const QuantizedPipeline& pipeline, int depth) {
  std::vector<Group> groups;
  for (const std::string& layer : pipeline.layers()) {
    const std::string name = depth > 0 ? PrefixOf(layer, depth) : layer;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& one) { return one.name == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}, 0});
    group->layers.push_back(layer);
    group->operations += pipeline.OperationsOf(layer);
  }
  return groups;
}

// Those of the most operations, in their order; how many are left out.
int KeepMost(size_t most, std::vector<Group>* groups) {
  if (groups->size() <= most) return 0;
  std::vector<size_t> order(groups->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*groups)[a].operations > (*groups)[b].operations; });
  order.resize(most);
  std::sort(order.begin(), order.end());
  std::vector<Group> kept;
  for (const size_t i : order) kept.push_back(std::move((*groups)[i]));
  const int left_out = static_cast<int>(groups->size() - most);
  *groups = std::move(kept);
  return left_out;
}

class SensitivityRun {
 public:
  SensitivityRun(RunState& run, Candidates& candidates, QuantizedPipeline& pipeline)
      : run_(run), candidates_(candidates), pipeline_(pipeline), config_(run.config.sensitivity()) {}

  absl::Status Run();

 private:
  // A group's two networks; none where it has none, or the same as all in FP32, or all in INT8.
  struct Pair {
    std::optional<Candidate> int8, fp32;
    std::string why_not;
  };

  Pair Compile(const Group& group);
  absl::Status MeasureRound(const std::vector<Group>& groups, size_t begin, size_t end);
  absl::StatusOr<Results::Candidate> ResultOf(Candidate& candidate);

  RunState& run_;
  Candidates& candidates_;
  QuantizedPipeline& pipeline_;
  const HarnessConfig::Sensitivity& config_;
  std::optional<Candidate> fp32_, int8_;
  int64_t samples_ = 0;
  bool logits_ = false;
  std::vector<Tensor> wanted_;
  Results::Sensitivity result_;
};

SensitivityRun::Pair SensitivityRun::Compile(const Group& group) {
  Pair pair;
  const auto keep = [&](absl::StatusOr<Candidate> candidate, absl::string_view what, std::optional<Candidate>* kept) {
    if (candidate.ok()) {
      *kept = *std::move(candidate);
    } else if (pair.why_not.empty()) {
      pair.why_not = absl::StrCat(what, ": ", candidate.status().message());
    }
  };
  absl::StatusOr<Candidate> only = pipeline_.Only(group.layers);
  if (only.ok() && !only->reports[0].changed) {
    pair.why_not = "alone it stays in FP32: its result would be an output in codes";
  } else {
    keep(std::move(only), "alone in INT8", &pair.int8);
  }
  keep(pipeline_.Without(group.layers), "alone in FP32", &pair.fp32);
  return pair;
}

absl::StatusOr<Results::Candidate> SensitivityRun::ResultOf(Candidate& candidate) {
  Results::Candidate result = Candidates::ResultOf(candidate);
  ASSIGN_OR_RETURN(const std::vector<Tensor> found,
                   candidates_.Outputs(candidate, *run_.calibration_samples, {0, samples_}));
  RecordError(wanted_, found, logits_, &result);
  return result;
}

absl::Status SensitivityRun::MeasureRound(const std::vector<Group>& groups, size_t begin, size_t end) {
  std::vector<Pair> pairs;
  for (size_t i = begin; i < end; ++i) {
    run_.progress.Update(static_cast<int64_t>(i), static_cast<int64_t>(groups.size()), "groups");
    pairs.push_back(Compile(groups[i]));
  }
  std::vector<Candidate*> timed = {&*fp32_, &*int8_};
  for (Pair& pair : pairs) {
    if (pair.int8.has_value()) timed.push_back(&*pair.int8);
    if (pair.fp32.has_value()) timed.push_back(&*pair.fp32);
  }
  RETURN_IF_ERROR(candidates_.Time(OrDefault(config_.min_time_ms(), kDefaultMinTimeMs), timed));
  for (size_t i = begin; i < end; ++i) {
    Pair& pair = pairs[i - begin];
    Results::Sensitivity::Group& group = *result_.add_groups();
    group.set_name(groups[i].name);
    *group.mutable_nodes() = {groups[i].layers.begin(), groups[i].layers.end()};
    group.set_why_not(pair.why_not);
    if (pair.int8.has_value()) {
      ASSIGN_OR_RETURN(*group.mutable_int8(), ResultOf(*pair.int8));
      *group.mutable_int8_gained_ms() = GainOf(pair.int8->ms, fp32_->ms);
    }
    if (pair.fp32.has_value()) {
      ASSIGN_OR_RETURN(*group.mutable_fp32(), ResultOf(*pair.fp32));
      *group.mutable_fp32_lost_ms() = GainOf(int8_->ms, pair.fp32->ms);
    }
  }
  return absl::OkStatus();
}

absl::Status SensitivityRun::Run() {
  ASSIGN_OR_RETURN(fp32_, candidates_.Baseline());
  ASSIGN_OR_RETURN(int8_, pipeline_.Int8());
  std::vector<Group> groups = GroupsOf(pipeline_, config_.group_depth());
  result_.set_left_out(KeepMost(OrDefault(config_.most(), kDefaultMost), &groups));
  samples_ = std::min<int64_t>(OrDefault(config_.samples(), kDefaultSamples), run_.CalibrationSamples());
  logits_ = run_.evaluation.data != nullptr && run_.evaluation.data->MakeJudge() != nullptr;
  ASSIGN_OR_RETURN(wanted_, candidates_.Outputs(*fp32_, *run_.calibration_samples, {0, samples_}));

  result_.set_variant(candidates_.variant().name());
  result_.set_batch(static_cast<int32_t>(candidates_.batch()));
  result_.set_threads(candidates_.threads());
  result_.set_samples(samples_);
  for (size_t begin = 0; begin < groups.size(); begin += kRound) {
    RETURN_IF_ERROR(MeasureRound(groups, begin, std::min(begin + kRound, groups.size())));
  }
  if (groups.empty()) RETURN_IF_ERROR(candidates_.Time(1, {&*fp32_, &*int8_}));
  ASSIGN_OR_RETURN(*result_.mutable_fp32(), ResultOf(*fp32_));
  ASSIGN_OR_RETURN(*result_.mutable_int8(), ResultOf(*int8_));
  run_.recorder.Update([&](Results& results) { *results.mutable_sensitivity() = std::move(result_); });
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureSensitivity(RunState& run) {
  if (!run.config.has_sensitivity() && !run.config.has_search()) return absl::OkStatus();
  run.progress.Begin("sensitivity");
  const char* what = run.config.has_sensitivity() ? "sensitivity" : "search";
  if (run.calibration_samples == nullptr) return UsageError(absl::StrCat(what, " wants calibration samples"));
  ASSIGN_OR_RETURN(const auto candidates, Candidates::Make(run, what));
  ASSIGN_OR_RETURN(QuantizedPipeline pipeline, QuantizedPipeline::Make(run, *candidates, what));
  return SensitivityRun(run, *candidates, pipeline).Run();
}

}  // namespace fuselage::harness::phases

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/text_format.h"
#include "harness/base/exit_code.h"
#include "harness/base/files.h"
#include "harness/decide/mixed_precision.h"
#include "harness/phases/candidates.h"
#include "harness/phases/phases.h"
#include "harness/phases/quantized_pipeline.h"
#include "ir/base/status.h"
#include "passes/quantize/quantize.pb.h"

namespace fuselage::harness::phases {
namespace {

using SearchConfig = HarnessConfig::Search;

constexpr int kDefaultSamples = 2000;
constexpr int kDefaultEvaluations = 24;
constexpr int kSnrSamples = 64;
// Turns of a network and the one in INT8 go on until the ratio of their times is known to a percent, or for so long.
constexpr int kLeastTurns = 5, kMostTurns = 40;
constexpr double kPrecision = 0.01;

std::string BudgetText(const SearchConfig& config) {
  SearchConfig budget = config;
  for (int field : {SearchConfig::kSamplesFieldNumber, SearchConfig::kEvaluationsFieldNumber,
                    SearchConfig::kPolicyFieldNumber, SearchConfig::kVariantFieldNumber}) {
    budget.GetReflection()->ClearField(&budget, SearchConfig::descriptor()->FindFieldByNumber(field));
  }
  std::string text = budget.ShortDebugString();
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// Samples that neither calibrate nor evaluate.
struct Verification {
  datasets::OpenedDataset dataset;  // Its data may be null.
  std::unique_ptr<compiler::Samples> samples;
  SampleRange range;
  std::string text;
};

absl::StatusOr<Verification> OpenVerification(RunState& run) {
  const int64_t wanted = OrDefault(run.config.search().samples(), kDefaultSamples);
  Verification verification;
  if (!run.config.has_dataset()) {
    if (run.given_inputs != nullptr) {
      return UsageError("search wants a dataset or random inputs: of `inputs` nothing is left to verify on");
    }
    // Beside the even seeds and the odd ones that calibrate and compare.
    verification.samples = std::make_unique<compiler::RandomSamples>(
        ~(2 * run.config.random_inputs().seed()), wanted, run.pool.get(), compiler::IntegerBounds(*run.imported));
    verification.range = {0, wanted};
    verification.text = absl::StrCat(wanted, " random samples");
    return verification;
  }
  ASSIGN_OR_RETURN(verification.dataset,
                   datasets::Open(run.config.dataset(), HarnessConfig::TRAIN, run.request.search));
  const datasets::Dataset& data = *verification.dataset.data;
  ASSIGN_OR_RETURN(verification.samples, data.Inputs(*run.imported, run.config.preprocessing(), run.pool.get()));
  const auto same = [&](const datasets::OpenedDataset& other) {
    return other.data != nullptr && other.path == verification.dataset.path &&
           other.split == verification.dataset.split;
  };
  int64_t first = 0;
  if (same(run.calibration)) first = std::max<int64_t>(first, run.CalibrationSamples());
  if (same(run.evaluation)) first = std::max(first, run.EvaluatedSamples().end);
  const int64_t count = std::min(wanted, data.size() - first);
  const std::string where = absl::StrCat(data.unit(), "s of ", verification.dataset.split);
  if (count < 1) {
    return UsageError(absl::StrCat("search: all ", data.size(), " ", where, " calibrate or evaluate, want some that ",
                                   "do neither, to verify on"));
  }
  if (count < wanted) run.Warn(absl::StrCat("search is verified on ", count, " ", where, ": there are no more"));
  verification.range = {first, first + count};
  verification.text = absl::StrCat(where, ": ", first, " to ", first + count - 1);
  return verification;
}

class SearchRun {
 public:
  SearchRun(RunState& run, Candidates& candidates, QuantizedPipeline& pipeline, const Verification& verification)
      : run_(run),
        config_(run.config.search()),
        candidates_(candidates),
        pipeline_(pipeline),
        on_{verification.dataset.data.get(), verification.samples.get(), verification.range},
        compared_{on_.range.first, std::min(on_.range.end, on_.range.first + kSnrSamples)} {
    result_.set_budget(BudgetText(config_));
    result_.set_verified_on(verification.text);
    result_.set_samples(on_.range.end - on_.range.first);
    result_.set_levels(candidates_.variant().engine.backend == "cuda"
                           ? "INT8 and FP32; FP16 is what a whole variant runs in (precision: \"fp16\"), and no kernel "
                             "computes in BF16"
                           : "INT8 and FP32: no CPU kernel of this build computes in FP16 or BF16");
  }

  absl::Status Run();

 private:
  // What the sensitivities say of a group alone.
  static LayerGroup Worth(const Results::Sensitivity::Group& group);
  absl::Status MeasureEnds();
  absl::Status Measure(Candidate& candidate, Results::Search::Trial* trial);
  absl::StatusOr<Results::Search::Trial> Try(const std::vector<int>& fp32);
  bool Within(const Results::Candidate& network) const;
  Verdict VerdictOn(const Results::Search::Trial& trial) const;
  std::vector<std::string> LayersOf(const std::vector<int>& groups) const;
  absl::Status AddVariant(const std::vector<std::string>& layers);
  absl::Status WritePolicy(const std::vector<std::string>& layers);

  RunState& run_;
  const SearchConfig& config_;
  Candidates& candidates_;
  QuantizedPipeline& pipeline_;
  const JudgedSamples on_;
  const SampleRange compared_;  // Those whose outputs are kept.
  const Results::Sensitivity sensitivity_ = run_.recorder.Snapshot().sensitivity();
  Candidate int8_;
  double int8_ms_ = 0;
  std::vector<Tensor> wanted_;
  Results::Search result_;
};

LayerGroup SearchRun::Worth(const Results::Sensitivity::Group& group) {
  LayerGroup worth;
  worth.gain_ms = group.has_fp32_lost_ms() ? group.fp32_lost_ms().median() : 0;
  if (!group.has_int8()) return worth;  // It is not in INT8 alone.
  const Results::Candidate& alone = group.int8();
  worth.harm = alone.has_kl_divergence_bits() ? std::max(0.0, alone.kl_divergence_bits())
                                              : std::pow(10, -alone.snr_db() / 10);  // Noise over signal, in power.
  return worth;
}

// In turns with INT8, whose time at the beginning is the unit: a clock that changes between two networks, or a program
// that runs beside some turns, does not make one of them faster.
absl::Status SearchRun::Measure(Candidate& candidate, Results::Search::Trial* trial) {
  std::vector<double> ratios;
  Interval interval;
  do {
    RETURN_IF_ERROR(candidates_.Time(run_.MinTimeMs() / kLeastTurns, {&int8_, &candidate}));
    ratios.push_back(Summarize(candidate.ms).median / Summarize(int8_.ms).median);
    interval = RatioOfMedians({1}, ratios);
  } while (ratios.size() < kLeastTurns ||
           (ratios.size() < kMostTurns && interval.high - interval.low > 2 * kPrecision * interval.low));
  Results::Candidate& result = *trial->mutable_network() = Candidates::ResultOf(candidate);
  result.set_ms(Summarize(ratios).median * int8_ms_);
  trial->set_ms_low(interval.low * int8_ms_);
  trial->set_ms_high(interval.high * int8_ms_);
  ASSIGN_OR_RETURN(const std::vector<Tensor> found, candidates_.Outputs(candidate, *on_.samples, compared_));
  RecordError(wanted_, found, on_.data != nullptr && on_.data->MakeJudge() != nullptr, &result);
  RETURN_IF_ERROR(candidates_.Judge(candidate, on_, &result));
  return absl::OkStatus();
}

absl::Status SearchRun::MeasureEnds() {
  run_.progress.Detail("FP32 and INT8");
  ASSIGN_OR_RETURN(Candidate fp32, candidates_.Baseline());
  ASSIGN_OR_RETURN(int8_, pipeline_.Int8());
  ASSIGN_OR_RETURN(wanted_, candidates_.Outputs(fp32, *on_.samples, compared_));
  RETURN_IF_ERROR(candidates_.Time(run_.MinTimeMs(), {&int8_, &fp32}));
  int8_ms_ = Summarize(int8_.ms).median;
  RETURN_IF_ERROR(Measure(fp32, result_.mutable_fp32()));
  result_.mutable_fp32()->set_within(Within(result_.fp32().network()));
  return absl::OkStatus();
}

bool SearchRun::Within(const Results::Candidate& network) const {
  const Results::Candidate& fp32 = result_.fp32().network();
  constexpr double kRounding = 1e-9;  // 91.8 - 91.7 is above 0.1.
  switch (config_.budget_case()) {
    case SearchConfig::kMaxTop1Drop: return fp32.top1() - network.top1() <= config_.max_top1_drop() + kRounding;
    case SearchConfig::kMinSnrDb: return network.snr_db() >= config_.min_snr_db();
    case SearchConfig::kMaxBitsPerByteIncreasePercent:
      return network.bits_per_byte() <=
             fp32.bits_per_byte() * (1 + config_.max_bits_per_byte_increase_percent() / 100) + kRounding;
    case SearchConfig::kMaxMs: return network.ms() <= config_.max_ms();
    case SearchConfig::BUDGET_NOT_SET: break;
  }
  return false;
}

Verdict SearchRun::VerdictOn(const Results::Search::Trial& trial) const {
  const Results::Candidate& network = trial.network();
  if (config_.budget_case() != SearchConfig::kMaxMs) {
    return {trial.within(), network.ms(), (trial.ms_high() - trial.ms_low()) / 2};
  }
  return {trial.within(), network.has_bits_per_byte() ? network.bits_per_byte() : -network.snr_db()};
}

std::vector<std::string> SearchRun::LayersOf(const std::vector<int>& groups) const {
  std::vector<std::string> layers;
  for (const int i : groups) {
    const auto& nodes = sensitivity_.groups(i).nodes();
    layers.insert(layers.end(), nodes.begin(), nodes.end());
  }
  return layers;
}

absl::StatusOr<Results::Search::Trial> SearchRun::Try(const std::vector<int>& fp32) {
  Results::Search::Trial trial;
  for (const int i : fp32) trial.add_groups_in_fp32(sensitivity_.groups(i).name());
  run_.progress.Detail(absl::StrCat("network ", result_.trials_size() + 1, ": ", fp32.size(), " of ",
                                    sensitivity_.groups_size(), " groups in FP32"));
  ASSIGN_OR_RETURN(Candidate candidate, pipeline_.Without(LayersOf(fp32)));
  RETURN_IF_ERROR(Measure(candidate, &trial));
  trial.set_within(Within(trial.network()));
  return trial;
}

absl::Status SearchRun::WritePolicy(const std::vector<std::string>& layers) {
  QuantizeOptions policy;
  for (const std::string& layer : layers) policy.add_skip(layer);
  std::string text;
  google::protobuf::TextFormat::PrintToString(policy, &text);
  text = absl::StrCat("# What stays in FP32 under the budget { ", result_.budget(),
                      " }: QuantizeOptions, which a config ", "takes by\n#   policy: \"<this file>\"\n", text);
  if (config_.policy().empty()) {
    constexpr char kFile[] = "policy.textproto";
    run_.recorder.WriteFile(kFile, text);
    result_.set_policy(absl::StrCat(run_.recorder.folder(), "/", kFile));
    return absl::OkStatus();
  }
  result_.set_policy(run_.request.search.InCaller(config_.policy()));
  return WriteFileAtomic(result_.policy(), text);
}

// Measured like those of the config from here on.
absl::Status SearchRun::AddVariant(const std::vector<std::string>& layers) {
  ASSIGN_OR_RETURN(Candidate candidate, pipeline_.Without(layers));
  Variant variant;
  variant.engine = candidates_.variant().engine;
  HarnessConfig::VariantConfig& config = run_.added_variants.emplace_back(*candidates_.variant().config);
  config.set_name(result_.variant());
  variant.config = &config;
  variant.graph = std::move(candidate.graph);
  run_.recorder.Update([&](Results& results) {
    for (int i = 0; i < results.variants_size(); ++i) {
      if (results.variants(i).name() != candidates_.variant().name()) continue;
      Results::Variant copy = results.variants(i);
      copy.set_name(config.name());
      *results.add_variants() = std::move(copy);
      return;
    }
  });
  run_.variants.push_back(std::move(variant));
  return absl::OkStatus();
}

absl::Status SearchRun::Run() {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(MeasureEnds());
  std::vector<LayerGroup> groups;
  for (const auto& group : sensitivity_.groups()) groups.push_back(Worth(group));
  MixedPrecisionOptions options;
  options.fp32_helps = config_.budget_case() != SearchConfig::kMaxMs;
  options.evaluations = OrDefault(config_.evaluations(), kDefaultEvaluations);
  std::map<std::vector<int>, Results::Search::Trial> trials;
  const auto evaluate = [&](const std::vector<int>& fp32) -> absl::StatusOr<Verdict> {
    ASSIGN_OR_RETURN(const Results::Search::Trial trial, Try(fp32));
    trials[fp32] = *result_.add_trials() = trial;
    return VerdictOn(trial);
  };
  ASSIGN_OR_RETURN(const MixedPrecision found, SearchMixedPrecision(groups, options, evaluate));

  const std::vector<std::string> layers = LayersOf(found.fp32);
  *result_.mutable_int8() = trials.at({});
  *result_.mutable_found() = trials.at(found.fp32);
  result_.set_evaluations(found.evaluations);
  result_.set_met(found.verdict.within);
  *result_.mutable_kept_in_fp32() = {layers.begin(), layers.end()};
  result_.set_variant(config_.variant().empty() ? "mixed" : config_.variant());
  result_.set_speedup_kept_percent(100 * result_.int8().network().ms() / result_.found().network().ms());
  if (!found.verdict.within) {
    run_.Warn(absl::StrCat("search: none of ", found.evaluations, " networks is within ", result_.budget()));
  }
  RETURN_IF_ERROR(WritePolicy(layers));
  RETURN_IF_ERROR(AddVariant(layers));
  result_.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  run_.recorder.Update([&](Results& results) { *results.mutable_search() = std::move(result_); });
  return absl::OkStatus();
}

}  // namespace

absl::Status SearchPrecision(RunState& run) {
  if (!run.config.has_search()) return absl::OkStatus();
  run.progress.Begin("search");
  ASSIGN_OR_RETURN(const auto candidates, Candidates::Make(run, "search"));
  ASSIGN_OR_RETURN(QuantizedPipeline pipeline, QuantizedPipeline::Make(run, *candidates, "search"));
  ASSIGN_OR_RETURN(const Verification verification, OpenVerification(run));
  return SearchRun(run, *candidates, pipeline, verification).Run();
}

}  // namespace fuselage::harness::phases

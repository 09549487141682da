#include "harness/phases/candidates.h"

#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/base/exit_code.h"
#include "harness/measure/measure.h"
#include "harness/measure/output_error.h"
#include "ir/base/comparison.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {
namespace {

constexpr int kJudgeBatch = 16;
constexpr int kLeastRuns = 5;

}  // namespace

absl::StatusOr<std::unique_ptr<Candidates>> Candidates::Make(RunState& run, absl::string_view what) {
  const Variant* variant = nullptr;
  for (size_t i = 1; i < run.variants.size(); ++i) {
    const Variant& one = run.variants[i];
    const bool reference = one.engine.backend == "reference";
    const bool is_last = one.config->after().empty() && !one.config->has_pipeline();
    if (one.runs() && is_last && one.config->precision().empty() && !reference) variant = &one;
  }
  if (variant == nullptr || !run.BaselineRuns()) {
    return UsageError(absl::StrCat(what, " wants a variant of the pipeline's last graph, and a baseline before it, ",
                                   "that run here, not by reference evaluation"));
  }
  if (!run.request.cache_folder.empty()) {
    return absl::WrapUnique(new Candidates(run, *variant, run.request.cache_folder, false));
  }
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "fuselage.XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) folder.clear();  // Then each candidate is calibrated.
  return absl::WrapUnique(new Candidates(run, *variant, folder, !folder.empty()));
}

Candidates::Candidates(RunState& run, const Variant& variant, std::string cache_folder, bool own_folder)
    : run_(run),
      variant_(&variant),
      batch_(run.config.benchmark().batches().empty() ? 1 : run.config.benchmark().batches(0)),
      pool_(run.threads[0]),
      cache_folder_(std::move(cache_folder)),
      own_folder_(own_folder),
      environment_(run, cache_folder_) {}

Candidates::~Candidates() {
  std::error_code ignored;
  if (own_folder_) std::filesystem::remove_all(cache_folder_, ignored);
}

absl::StatusOr<std::unique_ptr<compiler::Engine>> Candidates::MakeEngine(const ir::Graph& graph, const Variant& variant,
                                                                         int64_t batch,
                                                                         runtime::ThreadPool* pool) const {
  compiler::EngineOptions options = variant.engine;
  options.weights = nullptr;  // Those of a candidate go with it.
  return compiler::MakeEngine(graph, batch, run_.library.kernels, pool, options);
}

absl::StatusOr<Candidate> Candidates::Compile(const ir::Graph& graph, const PipelineConfig& pipeline) {
  Candidate candidate;
  candidate.graph = graph.Clone();
  ASSIGN_OR_RETURN(candidate.reports,
                   passes::RunPipeline(pipeline, run_.library.passes, environment_.get(), *candidate.graph));
  ASSIGN_OR_RETURN(candidate.engine, MakeEngine(*candidate.graph, *variant_, batch_, &pool_));
  if (const std::vector<std::string> steps = candidate.engine->ReferenceOps(); !steps.empty()) {
    return absl::UnimplementedError(absl::StrCat(
        "steps without a kernel would run by reference evaluation: ", steps.size(), ", such as ", steps[0]));
  }
  return candidate;
}

absl::StatusOr<Candidate> Candidates::Baseline() {
  Candidate candidate;
  candidate.graph = run_.variants[0].graph->Clone();
  ASSIGN_OR_RETURN(candidate.engine, MakeEngine(*candidate.graph, run_.variants[0], batch_, &pool_));
  return candidate;
}

absl::Status Candidates::Time(double min_time_ms, absl::Span<Candidate* const> candidates) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, run_.inputs->Batch(0, candidates[0]->engine->input_types()));
  std::vector<Contestant> contestants;
  for (Candidate* candidate : candidates) {
    contestants.push_back({[candidate, &inputs] { return candidate->engine->Run(inputs).status(); }, {}, nullptr});
  }
  MeasureOptions options;
  options.warmup = 1;
  options.repetitions = kLeastRuns;
  options.min_time_ms = min_time_ms;
  RETURN_IF_ERROR(MeasureInTurns(options, &contestants));
  for (size_t i = 0; i < candidates.size(); ++i) candidates[i]->ms = std::move(contestants[i].ms);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> Candidates::Outputs(Candidate& candidate, const compiler::Samples& samples,
                                                        SampleRange range) const {
  const int64_t batches = (range.end - range.first + batch_ - 1) / batch_;
  std::vector<Tensor> all;
  for (int64_t i = 0; i < batches; ++i) {
    ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                     samples.Batch(range.first + i * batch_, candidate.engine->input_types()));
    ASSIGN_OR_RETURN(const std::vector<Tensor>* outputs, candidate.engine->Run(inputs));
    for (size_t j = 0; j < outputs->size(); ++j) {
      const Tensor& output = (*outputs)[j];
      const Tensor row = output.type().quant.has_value() ? Dequantized(output) : output;
      if (i == 0) {
        TensorType type = row.type();
        type.shape.insert(type.shape.begin(), batches);
        all.emplace_back(std::move(type));
      }
      std::memcpy(static_cast<uint8_t*>(all[j].raw_data()) + i * row.byte_size(), row.raw_data(), row.byte_size());
    }
  }
  return all;
}

absl::Status Candidates::Judge(const Candidate& candidate, const JudgedSamples& on, Results::Candidate* result) {
  const std::unique_ptr<datasets::Judge> judge = on.data == nullptr ? nullptr : on.data->MakeJudge();
  if (judge == nullptr) return absl::OkStatus();
  auto engine = MakeEngine(*candidate.graph, *variant_, kJudgeBatch, run_.pool.get());
  if (absl::IsInvalidArgument(engine.status())) engine = MakeEngine(*candidate.graph, *variant_, 1, run_.pool.get());
  RETURN_IF_ERROR(engine.status());
  const std::string units = absl::StrCat(on.data->unit(), "s");
  const auto progress = [&](int64_t done) { run_.progress.Update(done, on.range.end - on.range.first, units); };
  RETURN_IF_ERROR(Evaluate(**engine, *on.samples, on.range, judge.get(), /*baseline=*/nullptr, progress).status());
  Results::Variant found;
  judge->Record(&found);
  if (found.has_top1()) result->set_top1(found.top1());
  if (found.has_bits_per_byte()) result->set_bits_per_byte(found.bits_per_byte());
  return absl::OkStatus();
}

Results::Candidate Candidates::ResultOf(const Candidate& candidate) {
  Results::Candidate result;
  result.set_ms(Summarize(candidate.ms).median);
  result.set_weight_bytes(candidate.engine->weight_bytes());
  result.set_peak_memory_bytes(candidate.engine->arena_bytes() + candidate.engine->weight_bytes());
  return result;
}

void RecordError(absl::Span<const Tensor> wanted, absl::Span<const Tensor> found, bool logits,
                 Results::Candidate* result) {
  result->set_snr_db(Compare(wanted, found).snr_db);
  if (!logits || wanted[0].dtype() != DType::kF32 || wanted[0].shape() != found[0].shape()) return;
  const LogitsError error = CompareLogits(wanted[0], found[0]);
  result->set_kl_divergence_bits(error.kl_divergence_bits);
  result->set_agreement(error.agreement);
}

Results::Gain GainOf(const std::vector<double>& before, const std::vector<double>& now) {
  const Interval interval = DifferenceOfMedians(Thinned(before), Thinned(now));
  Results::Gain gain;
  gain.set_median(Summarize(now).median - Summarize(before).median);
  gain.set_low(interval.low);
  gain.set_high(interval.high);
  return gain;
}

}  // namespace fuselage::harness::phases

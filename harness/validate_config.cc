#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/base/exit_code.h"
#include "harness/datasets/open.h"
#include "harness/load_config.h"
#include "ir/base/status.h"
#include "ir/base/suggest.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {
namespace {

// What the data cannot be held to; empty: nothing.
std::string FaultOfGates(const HarnessConfig::Gates& gates, absl::string_view accuracy) {
  if (accuracy != "top1" && (gates.has_min_top1() || gates.has_max_top1_drop())) {
    return "gates.min_top1 and max_top1_drop want a dataset with labels: without them there is no accuracy";
  }
  if (accuracy != "bits_per_byte" &&
      (gates.has_max_bits_per_byte() || gates.has_max_bits_per_byte_increase_percent())) {
    return "gates.max_bits_per_byte and max_bits_per_byte_increase_percent want a dataset of kind text";
  }
  return "";
}

// Gates of one variant, the i-th.
std::string FaultOfOwnGates(const HarnessConfig::Gates& gates, int i, absl::string_view accuracy) {
  if (gates.has_max_abs_error()) return "gates.max_abs_error is of passes, want it in the run's gates";
  if (i == 0 && (gates.has_max_top1_drop() || gates.has_min_speedup() || gates.has_min_snr_db() ||
                 gates.has_max_bits_per_byte_increase_percent())) {
    return "gates hold it to the baseline, which it is: want min_top1 or max_bits_per_byte";
  }
  return FaultOfGates(gates, accuracy);
}

// A dataset or random inputs, and what only one of them can give.
absl::Status ValidateInputs(const HarnessConfig& config, absl::string_view file) {
  const auto error = [&](absl::string_view text) { return UsageError(absl::StrCat(file, ": ", text)); };
  const absl::string_view accuracy = config.has_dataset() ? datasets::AccuracyOf(config.dataset()) : "";
  if (const std::string fault = FaultOfGates(config.gates(), accuracy); !fault.empty()) return error(fault);
  for (int i = 0; i < config.variants_size(); ++i) {
    const std::string fault = FaultOfOwnGates(config.variants(i).gates(), i, accuracy);
    if (!fault.empty()) return error(absl::StrCat("variants[", i, "].", fault));
  }
  if (!config.has_dataset()) {
    if (config.random_inputs().count() < 0) return error("random_inputs.count is negative, want at least 0");
    if (config.has_random_inputs() && !config.inputs().empty())
      return error("inputs and random_inputs: want one of the two");
    if (config.has_preprocessing() && config.preprocessing().input() == HarnessConfig::Preprocessing::FLOATS) {
      return error("preprocessing wants a dataset or --calibrate: other inputs go as they are");
    }
    return absl::OkStatus();
  }
  if (!config.inputs().empty() && config.save_outputs().empty()) {
    return error("inputs beside a dataset want save_outputs: nothing else reads them");
  }
  if (config.has_random_inputs()) return error("dataset and random_inputs: want one of the two");
  const std::string fault = datasets::FaultOf(config.dataset());
  return fault.empty() ? absl::OkStatus() : error(fault);
}

// One budget, of a kind that the data can be held to.
absl::Status ValidateSearch(const HarnessConfig& config, absl::string_view file) {
  const auto error = [&](absl::string_view text) { return UsageError(absl::StrCat(file, ": search", text)); };
  if (!config.has_search()) return absl::OkStatus();
  const HarnessConfig::Search& search = config.search();
  const absl::string_view accuracy = config.has_dataset() ? datasets::AccuracyOf(config.dataset()) : "";
  switch (search.budget_case()) {
    case HarnessConfig::Search::kMaxTop1Drop:
      if (accuracy != "top1") return error(".max_top1_drop wants a dataset with labels");
      break;
    case HarnessConfig::Search::kMaxBitsPerByteIncreasePercent:
      if (accuracy != "bits_per_byte") return error(".max_bits_per_byte_increase_percent wants a dataset of kind text");
      break;
    case HarnessConfig::Search::kMaxMs:
      if (!(search.max_ms() > 0)) return error(".max_ms wants a time above 0");
      break;
    case HarnessConfig::Search::kMinSnrDb:
      if (!std::isfinite(search.min_snr_db())) return error(".min_snr_db wants a finite number");
      break;
    case HarnessConfig::Search::BUDGET_NOT_SET:
      return error(" wants a budget: max_top1_drop, min_snr_db, max_bits_per_byte_increase_percent or max_ms");
  }
  const std::string variant = search.variant().empty() ? "mixed" : search.variant();
  for (const auto& other : config.variants()) {
    if (other.name() == variant) return error(absl::StrCat(".variant is ", variant, ", want a name of its own"));
  }
  return absl::OkStatus();
}

class Validator {
 public:
  Validator(const HarnessConfig& config, absl::string_view file) : config_(config), file_(file) {}

  absl::Status Run() const {
    if (!config_.sequence().empty()) return CheckSequence();
    if (config_.model().path().empty()) return Error("model.path", "empty", "an .onnx or .ir file, here or by --model");
    RETURN_IF_ERROR(ValidateInputs(config_, file_));
    RETURN_IF_ERROR(CheckCounts());
    if (config_.pipeline().steps().empty() && config_.variants().empty() && !config_.print_graphs()) {
      return Error("all of pipeline, variants and print_graphs", "empty", "something to do");
    }
    RETURN_IF_ERROR(CheckDecisions());
    RETURN_IF_ERROR(CheckVariants());
    RETURN_IF_ERROR(CheckBenchmark());
    return CheckThroughput();
  }

 private:
  absl::Status Error(absl::string_view field, absl::string_view found, absl::string_view want) const {
    return UsageError(absl::StrCat(file_, ": ", field, " is ", found, ", want ", want));
  }
  absl::Status AtLeast(absl::string_view field, int64_t value, int64_t least) const {
    return value >= least ? absl::OkStatus() : Error(field, absl::StrCat(value), absl::StrCat("at least ", least));
  }
  absl::Status NotNegative(absl::string_view field, double value) const {
    return value >= 0 ? absl::OkStatus() : Error(field, "negative or NaN", "at least 0");
  }
  absl::Status AreThreads(absl::string_view field, int threads) const {
    constexpr int kMost = runtime::ThreadPool::kMaxThreads;
    RETURN_IF_ERROR(AtLeast(field, threads, 0));
    return threads <= kMost ? absl::OkStatus() : Error(field, absl::StrCat(threads), absl::StrCat("at most ", kMost));
  }

  absl::Status CheckSequence() const {
    HarnessConfig rest = config_;
    rest.clear_sequence();
    rest.clear_title();
    if (rest.ByteSizeLong() == 0) return absl::OkStatus();
    return UsageError(
        absl::StrCat(file_, ": sequence: want nothing beside it but a title: the configs that it names say the rest"));
  }

  absl::Status CheckCounts() const {
    const auto& images = config_.preprocessing();
    const auto& evaluation = config_.evaluation();
    const std::pair<const char*, int64_t> counts[] = {
        {"preprocessing.height", images.height()},
        {"preprocessing.width", images.width()},
        {"preprocessing.shorter_side", images.shorter_side()},
        {"calibration.images", config_.calibration().images()},
        {"calibration.parts", config_.calibration().parts()},
        {"evaluation.limit", evaluation.limit()},
        {"evaluation.batch", evaluation.batch()},
        {"evaluation.shards", evaluation.shards()},
        {"evaluation.shard", evaluation.shard()},
        {"numeric_check.samples", config_.numeric_check().samples()},
        {"slowest_layers", config_.slowest_layers()},
    };
    for (const auto& [field, count] : counts) RETURN_IF_ERROR(AtLeast(field, count, 0));
    if (evaluation.shard() < std::max(1, evaluation.shards())) return absl::OkStatus();
    return Error("evaluation.shard", absl::StrCat(evaluation.shard()), "less than evaluation.shards");
  }

  // Ablation, sensitivity, energy and the search for a mixed precision.
  absl::Status CheckDecisions() const {
    const auto& sensitivity = config_.sensitivity();
    const auto& search = config_.search();
    const std::pair<const char*, int64_t> counts[] = {
        {"ablation.samples", config_.ablation().samples()},
        {"sensitivity.samples", sensitivity.samples()},
        {"sensitivity.group_depth", sensitivity.group_depth()},
        {"sensitivity.most", sensitivity.most()},
        {"search.samples", search.samples()},
        {"search.evaluations", search.evaluations()},
    };
    for (const auto& [field, count] : counts) RETURN_IF_ERROR(AtLeast(field, count, 0));
    const std::pair<const char*, double> quantities[] = {
        {"sensitivity.min_time_ms", sensitivity.min_time_ms()},
        {"energy.grams_co2_per_kwh", config_.energy().grams_co2_per_kwh()},
        {"search.max_top1_drop", search.max_top1_drop()},
        {"search.max_bits_per_byte_increase_percent", search.max_bits_per_byte_increase_percent()},
    };
    for (const auto& [field, quantity] : quantities) RETURN_IF_ERROR(NotNegative(field, quantity));
    return ValidateSearch(config_, file_);
  }

  absl::Status CheckVariants() const {
    static const auto& backends = *new std::vector<std::string>{"cpu", "reference", "cuda"};
    std::set<std::string> names;
    for (int i = 0; i < config_.variants_size(); ++i) {
      const auto& variant = config_.variants(i);
      const std::string field = absl::StrCat("variants[", i, "]"), &backend = variant.backend();
      if (variant.name().empty()) return Error(field + ".name", "empty", "a name");
      if (!names.insert(variant.name()).second) return Error(field + ".name", variant.name(), "a name of its own");
      if (!backend.empty() && std::find(backends.begin(), backends.end(), backend) == backends.end()) {
        return Error(field + ".backend", absl::StrCat("\"", backend, "\""),
                     absl::StrCat("cpu, reference or cuda", DidYouMean(backend, backends)));
      }
      if (!variant.precision().empty() && variant.precision() != "fp16") {
        return Error(field + ".precision", absl::StrCat("\"", variant.precision(), "\""), "fp16, or none");
      }
      if (variant.has_pipeline() && variant.pipeline().steps().empty()) {
        return Error(field + ".pipeline", "empty", "steps, or no pipeline");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckBenchmark() const {
    const auto& benchmark = config_.benchmark();
    for (int batch : benchmark.batches()) RETURN_IF_ERROR(AtLeast("benchmark.batches", batch, 1));
    for (int threads : benchmark.threads()) RETURN_IF_ERROR(AreThreads("benchmark.threads", threads));
    RETURN_IF_ERROR(AtLeast("benchmark.warmup", benchmark.warmup(), 0));
    RETURN_IF_ERROR(AtLeast("benchmark.repetitions", benchmark.repetitions(), 0));
    return NotNegative("benchmark.min_time_ms", benchmark.min_time_ms());
  }

  absl::Status CheckThroughput() const {
    const auto& throughput = config_.throughput();
    for (int streams : throughput.streams()) RETURN_IF_ERROR(AreThreads("throughput.streams", streams));
    RETURN_IF_ERROR(AreThreads("throughput.threads", throughput.threads()));
    RETURN_IF_ERROR(AtLeast("throughput.batch", throughput.batch(), 0));
    for (double percent : throughput.load_percent()) {
      if (!(percent > 0 && percent <= 1000)) {
        return Error("throughput.load_percent", absl::StrCat(percent), "more than 0, at most 1000");
      }
    }
    return NotNegative("throughput.seconds", throughput.seconds());
  }

  const HarnessConfig& config_;
  const absl::string_view file_;
};

}  // namespace

absl::Status ValidateConfig(const HarnessConfig& config, absl::string_view file) {
  return Validator(config, file).Run();
}

}  // namespace fuselage::harness

#include "harness/load_config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "harness/base/exit_code.h"
#include "harness/datasets/open.h"
#include "ir/base/status.h"
#include "ir/base/suggest.h"
#include "passes/quantize/quantize.pb.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {
namespace {

// The text between the i-th pair of double quotes; "" where there is none.
std::string QuotedPart(absl::string_view text, int i) {
  for (; i >= 0; --i) {
    const size_t open = text.find('"');
    if (open == absl::string_view::npos) return "";
    const size_t close = text.find('"', open + 1);
    if (close == absl::string_view::npos) return "";
    if (i == 0) return std::string(text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
  return "";
}

// Adds what was probably meant to protobuf's messages:
//   Message type "fuselage.HarnessConfig" has no field named "modle".
//   Could not find type "type.googleapis.com/fuselage.ConvBnOption" stored in google.protobuf.Any.
std::string WithSuggestion(const std::string& message, const std::vector<std::string>& pass_options) {
  if (absl::StrContains(message, "has no field named")) {
    const auto* descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(QuotedPart(message, 0));
    if (descriptor == nullptr) return message;
    std::vector<std::string> fields;
    for (int i = 0; i < descriptor->field_count(); ++i) fields.push_back(descriptor->field(i)->name());
    return absl::StrCat(absl::StripSuffix(message, "."), DidYouMean(QuotedPart(message, 1), fields));
  }
  if (absl::StrContains(message, "Could not find type")) {
    const std::string type(absl::StripPrefix(QuotedPart(message, 0), "type.googleapis.com/"));
    return absl::StrCat("no pass has options of type \"", type, "\"", DidYouMean(type, pass_options));
  }
  return message;
}

// Keeps the first error: the ones after it follow from it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  FirstError(absl::string_view file, const std::vector<std::string>& pass_options)
      : file_(file), pass_options_(pass_options) {}

  void AddError(int line, int column, const std::string& message) override {
    if (!error_.empty()) return;
    error_ = absl::StrCat(file_, ":", line + 1, ":", column + 1, ": ", WithSuggestion(message, pass_options_));
  }
  const std::string& error() const { return error_; }

 private:
  absl::string_view file_;
  const std::vector<std::string>& pass_options_;
  std::string error_;
};

std::vector<std::string> ShippedConfigs(const SearchPath& search) {
  std::set<std::string> names;
  for (const std::string& root : {search.workspace, search.runfiles}) {
    std::error_code error;
    if (root.empty()) continue;
    for (std::filesystem::directory_iterator it(root + "/harness/configs", error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".textproto") names.insert(it->path().filename().string());
    }
  }
  return {names.begin(), names.end()};
}

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
    if (config.has_preprocessing()) {
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

// Merges the options that the steps have for `quantize` with those of the policy; how many steps these are.
int MergeIntoQuantize(const QuantizeOptions& policy, google::protobuf::RepeatedPtrField<PipelineConfig::Step>* steps) {
  int merged = 0;
  for (PipelineConfig::Step& step : *steps) {
    if (step.has_fixed_point()) merged += MergeIntoQuantize(policy, step.mutable_fixed_point()->mutable_steps());
    QuantizeOptions options;
    if (!step.has_pass() || !step.pass().UnpackTo(&options)) continue;
    options.MergeFrom(policy);
    step.mutable_pass()->PackFrom(options);
    ++merged;
  }
  return merged;
}

absl::Status ApplyPolicy(const std::string& config_path, const SearchPath& search, HarnessConfig* config) {
  const std::string beside = config_path.substr(0, config_path.rfind('/') + 1) + config->policy();
  const std::string path = FileExists(beside) ? beside : search.Find(config->policy());
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return UsageError(absl::StrCat(config_path, ": policy: ", text.status().message()));
  QuantizeOptions policy;
  RETURN_IF_ERROR(ParseTextproto(*text, path, {}, &policy));
  if (MergeIntoQuantize(policy, config->mutable_pipeline()->mutable_steps()) > 0) return absl::OkStatus();
  return UsageError(absl::StrCat(config_path, ": policy wants a step of the pipeline with QuantizeOptions"));
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

}  // namespace

std::string FindConfig(const std::string& name, const SearchPath& search) {
  if (absl::StrContains(name, "/")) return search.Find(name);
  const std::string own = search.InCaller(name);
  if (FileExists(own)) return own;
  for (const std::string& root : {search.workspace, search.runfiles}) {
    const std::string shipped = absl::StrCat(root, "/harness/configs/", name);
    if (!root.empty() && FileExists(shipped)) return shipped;
  }
  return own;
}

absl::Status ParseTextproto(absl::string_view text, absl::string_view file,
                            const std::vector<std::string>& pass_options, google::protobuf::Message* message) {
  FirstError first_error(file, pass_options);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&first_error);
  return parser.ParseFromString(std::string(text), message) ? absl::OkStatus() : UsageError(first_error.error());
}

absl::StatusOr<LoadedConfig> LoadConfig(const std::string& name, const SearchPath& search,
                                        const std::vector<std::string>& pass_options, const Flags& flags) {
  LoadedConfig loaded;
  loaded.path = FindConfig(name, search);
  loaded.name = Stem(loaded.path);
  const absl::StatusOr<std::string> text = ReadFile(loaded.path);
  if (!text.ok()) {
    return UsageError(absl::StrCat("--config: ", text.status().message(), DidYouMean(name, ShippedConfigs(search))));
  }
  ASSIGN_OR_RETURN(loaded.config, ParseConfig(*text, loaded.path, pass_options, flags));
  if (!loaded.config.policy().empty()) RETURN_IF_ERROR(ApplyPolicy(loaded.path, search, &loaded.config));
  return loaded;
}

absl::StatusOr<std::vector<LoadedConfig>> LoadSequence(const LoadedConfig& sequence, const SearchPath& search,
                                                       const std::vector<std::string>& pass_options,
                                                       const Flags& flags) {
  std::vector<LoadedConfig> members;
  std::set<std::string> names;
  const std::string folder = sequence.path.substr(0, sequence.path.rfind('/') + 1);
  for (const std::string& name : sequence.config.sequence()) {
    const std::string beside = folder + name;
    auto member = LoadConfig(FileExists(beside) ? beside : name, search, pass_options, flags);
    if (!member.ok()) return UsageError(absl::StrCat(sequence.path, ": sequence: ", member.status().message()));
    if (!member->config.sequence().empty()) {
      return UsageError(
          absl::StrCat(sequence.path, ": sequence: ", name, " is a sequence itself, want a config that runs"));
    }
    if (!names.insert(member->name).second) {
      return UsageError(absl::StrCat(sequence.path, ": sequence: two configs are named ", member->name,
                                     ", which names the output folder"));
    }
    members.push_back(*std::move(member));
  }
  return members;
}

absl::StatusOr<HarnessConfig> ParseConfig(absl::string_view text, absl::string_view file,
                                          const std::vector<std::string>& pass_options, const Flags& flags) {
  HarnessConfig config;
  RETURN_IF_ERROR(ParseTextproto(text, file, pass_options, &config));
  if (config.sequence().empty()) ApplyFlags(flags, &config);
  RETURN_IF_ERROR(ValidateConfig(config, file));
  return config;
}

absl::Status ValidateConfig(const HarnessConfig& config, absl::string_view file) {
  const auto error = [&](absl::string_view field, absl::string_view found, absl::string_view want) {
    return UsageError(absl::StrCat(file, ": ", field, " is ", found, ", want ", want));
  };
  const auto at_least = [&](absl::string_view field, int64_t value, int64_t least) {
    return value >= least ? absl::OkStatus() : error(field, absl::StrCat(value), absl::StrCat("at least ", least));
  };
  const auto not_negative = [&](absl::string_view field, double value) {
    return value >= 0 ? absl::OkStatus() : error(field, "negative or NaN", "at least 0");
  };
  if (!config.sequence().empty()) {
    HarnessConfig rest = config;
    rest.clear_sequence();
    rest.clear_title();
    if (rest.ByteSizeLong() == 0) return absl::OkStatus();
    return UsageError(
        absl::StrCat(file, ": sequence: want nothing beside it but a title: the configs that it names say the rest"));
  }
  if (config.model().path().empty()) return error("model.path", "empty", "an .onnx or .ir file, here or by --model");
  RETURN_IF_ERROR(ValidateInputs(config, file));
  RETURN_IF_ERROR(at_least("preprocessing.height", config.preprocessing().height(), 0));
  RETURN_IF_ERROR(at_least("preprocessing.width", config.preprocessing().width(), 0));
  RETURN_IF_ERROR(at_least("preprocessing.shorter_side", config.preprocessing().shorter_side(), 0));
  RETURN_IF_ERROR(at_least("calibration.images", config.calibration().images(), 0));
  RETURN_IF_ERROR(at_least("calibration.parts", config.calibration().parts(), 0));
  RETURN_IF_ERROR(at_least("evaluation.limit", config.evaluation().limit(), 0));
  RETURN_IF_ERROR(at_least("evaluation.batch", config.evaluation().batch(), 0));
  RETURN_IF_ERROR(at_least("evaluation.shards", config.evaluation().shards(), 0));
  RETURN_IF_ERROR(at_least("evaluation.shard", config.evaluation().shard(), 0));
  if (config.evaluation().shard() >= std::max(1, config.evaluation().shards())) {
    return error("evaluation.shard", absl::StrCat(config.evaluation().shard()), "less than evaluation.shards");
  }
  RETURN_IF_ERROR(at_least("numeric_check.samples", config.numeric_check().samples(), 0));
  RETURN_IF_ERROR(at_least("slowest_layers", config.slowest_layers(), 0));
  if (config.pipeline().steps().empty() && config.variants().empty() && !config.print_graphs()) {
    return error("all of pipeline, variants and print_graphs", "empty", "something to do");
  }
  RETURN_IF_ERROR(at_least("ablation.samples", config.ablation().samples(), 0));
  RETURN_IF_ERROR(at_least("sensitivity.samples", config.sensitivity().samples(), 0));
  RETURN_IF_ERROR(at_least("sensitivity.group_depth", config.sensitivity().group_depth(), 0));
  RETURN_IF_ERROR(at_least("sensitivity.most", config.sensitivity().most(), 0));
  RETURN_IF_ERROR(not_negative("sensitivity.min_time_ms", config.sensitivity().min_time_ms()));
  RETURN_IF_ERROR(not_negative("energy.grams_co2_per_kwh", config.energy().grams_co2_per_kwh()));
  RETURN_IF_ERROR(not_negative("search.max_top1_drop", config.search().max_top1_drop()));
  RETURN_IF_ERROR(
      not_negative("search.max_bits_per_byte_increase_percent", config.search().max_bits_per_byte_increase_percent()));
  RETURN_IF_ERROR(at_least("search.samples", config.search().samples(), 0));
  RETURN_IF_ERROR(at_least("search.evaluations", config.search().evaluations(), 0));
  RETURN_IF_ERROR(ValidateSearch(config, file));
  std::set<std::string> names;
  for (int i = 0; i < config.variants_size(); ++i) {
    const auto& variant = config.variants(i);
    const std::string field = absl::StrCat("variants[", i, "]");
    if (variant.name().empty()) return error(field + ".name", "empty", "a name");
    if (!names.insert(variant.name()).second) return error(field + ".name", variant.name(), "a name of its own");
    const std::vector<std::string> backends = {"cpu", "reference", "cuda"};
    if (!variant.backend().empty() &&
        std::find(backends.begin(), backends.end(), variant.backend()) == backends.end()) {
      return error(field + ".backend", absl::StrCat("\"", variant.backend(), "\""),
                   absl::StrCat("cpu, reference or cuda", DidYouMean(variant.backend(), backends)));
    }
    if (!variant.precision().empty() && variant.precision() != "fp16") {
      return error(field + ".precision", absl::StrCat("\"", variant.precision(), "\""), "fp16, or none");
    }
    if (variant.has_pipeline() && variant.pipeline().steps().empty()) {
      return error(field + ".pipeline", "empty", "steps, or no pipeline");
    }
  }
  constexpr int kMost = runtime::ThreadPool::kMaxThreads;
  const auto at_most_threads = [&](absl::string_view field, int threads) {
    RETURN_IF_ERROR(at_least(field, threads, 0));
    return threads <= kMost ? absl::OkStatus() : error(field, absl::StrCat(threads), absl::StrCat("at most ", kMost));
  };
  const auto& benchmark = config.benchmark();
  for (int batch : benchmark.batches()) RETURN_IF_ERROR(at_least("benchmark.batches", batch, 1));
  for (int threads : benchmark.threads()) RETURN_IF_ERROR(at_most_threads("benchmark.threads", threads));
  RETURN_IF_ERROR(at_least("benchmark.warmup", benchmark.warmup(), 0));
  RETURN_IF_ERROR(at_least("benchmark.repetitions", benchmark.repetitions(), 0));
  RETURN_IF_ERROR(not_negative("benchmark.min_time_ms", benchmark.min_time_ms()));
  const auto& throughput = config.throughput();
  for (int streams : throughput.streams()) RETURN_IF_ERROR(at_most_threads("throughput.streams", streams));
  RETURN_IF_ERROR(at_most_threads("throughput.threads", throughput.threads()));
  RETURN_IF_ERROR(at_least("throughput.batch", throughput.batch(), 0));
  for (double percent : throughput.load_percent()) {
    if (!(percent > 0 && percent <= 1000)) {
      return error("throughput.load_percent", absl::StrCat(percent), "more than 0, at most 1000");
    }
  }
  return not_negative("throughput.seconds", throughput.seconds());
}

}  // namespace fuselage::harness

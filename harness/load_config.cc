#include "harness/load_config.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "harness/base/exit_code.h"
#include "ir/base/status.h"
#include "ir/base/suggest.h"
#include "passes/quantize/quantize.pb.h"

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

}  // namespace fuselage::harness

#include "harness/report/merge.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/text_format.h"
#include "ir/base/check.h"
#include "ir/base/status.h"

namespace fuselage::report {
namespace {

// Fields of Environment that all runs share which have them: one without CUDA knows no driver.
constexpr const char* kShared[] = {"cpu",      "isa",         "cores",  "memory_bytes", "os",        "gpu",
                                   "gpu_arch", "cuda_driver", "onednn", "compiler",     "git_commit"};

absl::Status CheckShared(absl::Span<const Results::Run> runs) {
  for (const char* name : kShared) {
    const auto* field = Results::Environment::descriptor()->FindFieldByName(name);
    FUSELAGE_CHECK(field != nullptr);
    const auto text = [&](const Results::Run& run) {
      std::string value;
      const auto& environment = run.results().environment();
      if (!environment.GetReflection()->HasField(environment, field)) return value;
      google::protobuf::TextFormat::PrintFieldValueToString(environment, field, -1, &value);
      return value;
    };
    const auto first = std::find_if(runs.begin(), runs.end(), [&](const auto& run) { return !text(run).empty(); });
    for (auto run = first; run != runs.end(); ++run) {
      if (text(*run).empty() || text(*run) == text(*first)) continue;
      return absl::InvalidArgumentError(absl::StrCat(run->name(), ": found ", name, " ", text(*run), ", wanted ",
                                                     text(*first), " as in ", first->name(),
                                                     ": one machine and one build make a session"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNames(absl::Span<const Results::Run> runs) {
  std::set<std::string> names;
  for (const Results::Run& run : runs) {
    if (names.insert(run.name()).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("found two runs called ", run.name(), ", wanted a name for each"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Results> Merge(absl::Span<const Results::Run> runs) {
  Results merged;
  for (const Results::Run& run : runs) {
    const Results& results = run.results();
    if (results.runs().empty() && results.steps().empty()) *merged.add_runs() = run;
    merged.mutable_runs()->MergeFrom(results.runs());
    merged.mutable_steps()->MergeFrom(results.steps());
  }
  const std::vector<Results::Run> all(merged.runs().begin(), merged.runs().end());
  RETURN_IF_ERROR(CheckNames(all));
  RETURN_IF_ERROR(CheckShared(all));

  std::set<std::string> configs;
  std::vector<std::string> errors;
  auto& environment = *merged.mutable_environment();
  for (const Results::Run& run : all) {
    const std::string started = environment.started();
    environment.MergeFrom(run.results().environment());
    if (!started.empty()) environment.set_started(std::min(started, environment.started()));
    configs.insert(run.results().config());
    if (run.results().status() != "complete") errors.push_back(absl::StrCat(run.name(), ": ", run.results().error()));
  }
  environment.clear_process_peak_rss_bytes();  // Each run's own.
  merged.set_status(errors.empty() ? "complete" : "INCOMPLETE");
  merged.set_error(absl::StrJoin(errors, "\n"));
  merged.set_config(absl::StrJoin(configs, ", "));
  return merged;
}

}  // namespace fuselage::report

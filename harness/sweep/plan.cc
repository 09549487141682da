#include "harness/sweep/plan.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/load_config.h"
#include "harness/report/table.h"
#include "ir/base/status.h"

namespace fuselage::harness::sweep {
namespace {

int FromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  int value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) && value >= 0 ? value : otherwise;
}

std::string OrDash(bool has, double value, int decimals) { return has ? report::Number(value, decimals) : "-"; }

}  // namespace

absl::StatusOr<Plan> LoadPlan(const Flags& flags, const SearchPath& search,
                              const std::vector<std::string>& pass_options) {
  const std::string path = FindConfig(flags.config, search);
  const auto text = ReadFile(path);
  if (!text.ok()) return UsageError(absl::StrCat("--config: ", text.status().message()));
  Plan plan;
  plan.name = Stem(path);
  RETURN_IF_ERROR(ParseTextproto(*text, path, pass_options, &plan.sweep));
  if (plan.sweep.config().empty()) {
    return UsageError(absl::StrCat(path, ": config is empty, want the config that the runs start from"));
  }
  const std::string beside = path.substr(0, path.rfind('/') + 1) + plan.sweep.config();
  ASSIGN_OR_RETURN(const LoadedConfig base,
                   LoadConfig(FileExists(beside) ? beside : plan.sweep.config(), search, pass_options, flags));
  if (!base.config.sequence().empty()) {
    return UsageError(absl::StrCat(path, ": config: ", base.path, " is a sequence, want a config that runs"));
  }
  ASSIGN_OR_RETURN(plan.units, UnitsOf(plan.sweep, base.config, path, search));
  return plan;
}

Rank RankOfProcess() {
  // Open MPI, MPICH and its kin, Slurm.
  const std::pair<const char*, const char*> names[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const auto& [rank_name, size_name] : names) {
    const int rank = FromEnvironment(rank_name, -1);
    if (rank >= 0) return {rank, std::max(rank + 1, FromEnvironment(size_name, 1))};
  }
  return {};
}

std::string ToText(const SweepResults& results) {
  using report::Align;
  report::Table table("Sweep", {{"choices", Align::kLeft},
                                {"variant", Align::kLeft},
                                {"samples"},
                                {"top-1"},
                                {"bits per byte"},
                                {"SNR, dB"},
                                {"weights"},
                                {"ms"},
                                {"speedup"}});
  for (const auto& row : results.rows()) {
    for (const auto& variant : row.variants()) {
      const bool timed = variant.measurements_size() > 0;
      const Results::Measurement first = timed ? variant.measurements(0) : Results::Measurement();
      table.AddRow({absl::StrJoin(row.choices(), ", "), variant.name(),
                    variant.images() > 0 ? absl::StrCat(variant.images()) : "-",
                    OrDash(variant.has_top1(), variant.top1(), 2),
                    OrDash(variant.has_bits_per_byte(), variant.bits_per_byte(), 4),
                    OrDash(variant.has_snr_db(), variant.snr_db(), 1), report::Megabytes(variant.weight_bytes()),
                    OrDash(timed, first.latency_ms().median(), 2), OrDash(first.has_speedup(), first.speedup(), 2)});
    }
  }
  std::string text = table.empty() ? "" : table.ToString();
  for (const auto& failure : results.failures()) {
    absl::StrAppend(&text, "failed: ", report::Escaped(failure.unit()), ": ", report::Escaped(failure.error()), "\n");
  }
  return text;
}

}  // namespace fuselage::harness::sweep

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {

// Every network that was tried, and the one that was found.
std::string Search(const Results& results, const Options&) {
  if (!results.has_search()) return "";
  const Results::Search& search = results.search();
  Table table(
      absl::StrCat("Mixed precision under ", Escaped(search.budget()), ", verified on ", Escaped(search.verified_on())),
      {{"network", Align::kLeft}, {"groups in FP32"}, {"ms"}, {"accuracy"}, {"SNR dB"}, {"within", Align::kLeft}});
  const auto row = [&](const std::string& name, const Results::Search::Trial& trial, const std::string& groups) {
    table.AddRow({name, groups, Milliseconds(trial.network().ms()), AccuracyText(trial.network()),
                  Number(FUSELAGE_OPTIONAL(trial.network(), snr_db), 1), trial.within() ? "yes" : "no"});
  };
  const auto groups = [](const Results::Search::Trial& trial) { return absl::StrCat(trial.groups_in_fp32_size()); };
  row("FP32", search.fp32(), "all");
  for (int i = 0; i < search.trials_size(); ++i) {
    row(i == 0 ? "INT8" : absl::StrCat("network ", i + 1), search.trials(i), groups(search.trials(i)));
  }
  row(absl::StrCat("found: ", search.variant()), search.found(), groups(search.found()));
  return absl::StrCat(
      table.ToString(),
      search.met() ? absl::StrFormat("within the budget at %.1f %% of INT8's speedup", search.speedup_kept_percent())
                   : "NOT within the budget: nothing that was tried is",
      "; ", search.kept_in_fp32_size(), search.kept_in_fp32_size() == 1 ? " layer" : " layers",
      " in FP32\nspent: ", search.evaluations(), search.evaluations() == 1 ? " network" : " networks",
      absl::StrFormat(" compiled, timed and verified, %.1f s\n", search.seconds()),
      "levels: ", Escaped(search.levels()), "\npolicy: ", Escaped(search.policy()), "\n");
}

}  // namespace fuselage::report::sections

#include "absl/strings/str_cat.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {

std::string Passes(const Results& results, const Options&) {
  Table table("Passes",
              {{"pass", Align::kLeft}, {"before"}, {"after"}, {"matches"}, {"ms"}, {"max error"}, {"SNR dB"}});
  for (const auto& pass : results.passes()) {
    table.AddRow({pass.name(), absl::StrCat(pass.nodes_before()), absl::StrCat(pass.nodes_after()),
                  absl::StrCat(pass.matches()), Number(pass.wall_ms(), 1),
                  ErrorText(FUSELAGE_OPTIONAL(pass, max_abs_error)), Number(FUSELAGE_OPTIONAL(pass, snr_db), 1)});
  }
  return table.empty() ? "" : table.ToString();
}

}  // namespace fuselage::report::sections

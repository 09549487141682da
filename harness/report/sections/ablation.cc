#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {

// What each pass gives: the network without it, beside the whole pipeline's.
std::string Ablation(const Results& results, const Options&) {
  if (!results.has_ablation()) return "";
  const Results::Ablation& ablation = results.ablation();
  std::vector<Column> columns = {{"without", Align::kLeft},
                                 {"ms"},
                                 {"pass gains, ms"},
                                 {"95 % of it within"},
                                 {"SNR dB"},
                                 {"accuracy"},
                                 {"weights"},
                                 {"memory"},
                                 {"note", Align::kLeft}};
  Table table(
      absl::StrCat("Passes switched off in turn, variant ", Escaped(ablation.variant()), ", batch ", ablation.batch(),
                   ", threads ", ablation.threads(), "; accuracy of ", ablation.samples(), " ", Unit(results), "s"),
      columns);
  const auto row = [&](const std::string& name, const Results::Candidate* network, const Results::Gain* gain,
                       const std::string& note) {
    std::vector<std::string> cells = {name};
    if (network == nullptr) {
      cells.insert(cells.end(), 7, "-");
    } else {
      cells.push_back(Milliseconds(network->ms()));
      cells.push_back(gain == nullptr ? "-" : SignedMs(gain->median()));
      cells.push_back(gain == nullptr ? "-" : absl::StrCat(SignedMs(gain->low()), " to ", SignedMs(gain->high())));
      cells.push_back(Number(FUSELAGE_OPTIONAL(*network, snr_db), 1));
      cells.push_back(AccuracyText(*network));
      cells.push_back(Megabytes(network->weight_bytes()));
      cells.push_back(Megabytes(network->peak_memory_bytes()));
    }
    cells.push_back(note);
    table.AddRow(std::move(cells));
  };
  row("(nothing)", &ablation.whole(), nullptr, "");
  for (const auto& one : ablation.rows()) {
    const std::string note = one.same()              ? "the same network"
                             : one.why_not().empty() ? ""
                                                     : absl::StrCat("not measured: ", one.why_not());
    row(one.pass(), one.has_without() ? &one.without() : nullptr, one.has_gained_ms() ? &one.gained_ms() : nullptr,
        note);
  }
  return table.ToString();
}

}  // namespace fuselage::report::sections

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

constexpr int kRows = 20;
constexpr int kNameWidth = 56;

// Lower where a group does more harm alone in INT8.
double Rank(const Results::Sensitivity::Group& group) { return group.has_int8() ? group.int8().snr_db() : 1e300; }

}  // namespace

// The groups that do most harm first.
std::string Sensitivity(const Results& results, const Options&) {
  if (!results.has_sensitivity()) return "";
  const Results::Sensitivity& sensitivity = results.sensitivity();
  std::vector<const Results::Sensitivity::Group*> groups;
  for (const auto& group : sensitivity.groups()) groups.push_back(&group);
  std::stable_sort(groups.begin(), groups.end(), [](const auto* a, const auto* b) { return Rank(*a) < Rank(*b); });
  const bool logits = sensitivity.int8().has_kl_divergence_bits();
  std::vector<Column> columns = {{"layers", Align::kLeft}, {"alone in INT8: dB"}};
  if (logits) columns.insert(columns.end(), {{"KL, bits"}, {"agreement"}});
  columns.insert(columns.end(), {{"alone in FP32: dB"}, {"INT8 gains, ms"}, {"95 % of it within"}});
  Table table(absl::StrCat("Layers alone, variant ", Escaped(sensitivity.variant()), ", batch ", sensitivity.batch(),
                           ", threads ", sensitivity.threads(), ", ", sensitivity.samples(), " calibration ",
                           Unit(results), "s"),
              columns);
  const auto row = [&](const std::string& name, const Results::Candidate* int8, const Results::Candidate* fp32,
                       const std::string& gain, const std::string& within) {
    std::vector<std::string> cells = {Shortened(name, kNameWidth),
                                      int8 == nullptr ? "-" : Number(FUSELAGE_OPTIONAL(*int8, snr_db), 1)};
    if (logits) {
      cells.push_back(int8 == nullptr ? "-" : ErrorText(FUSELAGE_OPTIONAL(*int8, kl_divergence_bits)));
      cells.push_back(int8 == nullptr ? "-" : absl::StrCat(Number(FUSELAGE_OPTIONAL(*int8, agreement), 1), " %"));
    }
    cells.push_back(fp32 == nullptr ? "-" : Number(FUSELAGE_OPTIONAL(*fp32, snr_db), 1));
    cells.push_back(gain);
    cells.push_back(within);
    table.AddRow(std::move(cells));
  };
  row("(all in INT8)", &sensitivity.int8(), nullptr, SignedMs(sensitivity.fp32().ms() - sensitivity.int8().ms()), "-");
  for (size_t i = 0; i < std::min<size_t>(groups.size(), kRows); ++i) {
    const auto& group = *groups[i];
    const bool timed = group.has_fp32_lost_ms();
    row(group.name(), group.has_int8() ? &group.int8() : nullptr, group.has_fp32() ? &group.fp32() : nullptr,
        timed ? SignedMs(group.fp32_lost_ms().median()) : "-",
        timed ? absl::StrCat(SignedMs(group.fp32_lost_ms().low()), " to ", SignedMs(group.fp32_lost_ms().high()))
              : "-");
  }
  std::string text = table.ToString();
  if (groups.size() > kRows) absl::StrAppend(&text, "and ", groups.size() - kRows, " more in results.json\n");
  if (sensitivity.left_out() > 0) {
    absl::StrAppend(&text, "not measured: ", sensitivity.left_out(), " of fewer operations (sensitivity.most)\n");
  }
  return text;
}

}  // namespace fuselage::report::sections

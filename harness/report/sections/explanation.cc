#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

constexpr int kNameWidth = 28;

std::string Share(int64_t part, int64_t all) {
  return absl::StrFormat("%.1f %%", all > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(all) : 0);
}

// The message without the names in it: "becomes conv2d (module @..)".
std::string Masked(absl::string_view message) {
  std::string out;
  bool in_name = false;
  for (char c : message) {
    in_name = in_name && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/');
    if (in_name) continue;
    out.push_back(c);
    if (c == '%' || c == '@') {
      absl::StrAppend(&out, "..");
      in_name = true;
    }
  }
  return out;
}

// Rows of one kind. So many applied remarks or notes that differ in names alone share a row; what was left alone is
// what one looks for, and always has its own.
void AddDecisions(const Results::Pass& pass, absl::string_view kind, const std::string& text, Table* table) {
  constexpr size_t kShared = 4;
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Results::Decision*>> groups;
  for (const auto& decision : pass.decisions()) {
    if (decision.kind() != kind) continue;
    auto& group = groups[Masked(decision.message())];
    if (group.empty()) order.push_back(Masked(decision.message()));
    group.push_back(&decision);
  }
  for (const std::string& masked : order) {
    const auto& group = groups[masked];
    const bool shared = group.size() >= kShared && kind != "missed";
    for (const Results::Decision* decision : group) {
      const std::string node = decision->node().empty() ? "-" : Shortened(decision->node(), kNameWidth);
      if (shared) {
        table->AddRow({absl::StrCat(node, " and ", group.size() - 1, " more"), text, masked});
        break;
      }
      table->AddRow({node, text, decision->message()});
    }
  }
}

std::string DecisionTable(const Results::Pass& pass) {
  std::map<std::string, int> counts;
  for (const auto& decision : pass.decisions()) ++counts[decision.kind()];
  std::string title =
      absl::StrCat(Escaped(pass.name()), ": ", counts["applied"], " applied, ", counts["missed"], " left alone");
  if (counts["note"] > 0) absl::StrAppend(&title, ", notes: ", counts["note"]);
  Table table(title, {{"node", Align::kLeft}, {"", Align::kLeft}, {"what, or why not", Align::kLeft}});
  AddDecisions(pass, "missed", "left alone", &table);
  AddDecisions(pass, "applied", "applied", &table);
  AddDecisions(pass, "note", "note", &table);
  return table.empty() ? title + "\n" : table.ToString();
}

}  // namespace

// Remarks and placements of the command `explain`.
std::string Explanation(const Results& results, const Options&) {
  if (!results.has_explanation()) return "";
  const auto& explanation = results.explanation();
  std::string out;
  if (results.passes_size() > 0) {
    out = "What each pass did, and what it left alone; results.json has every remark by itself\n";
  }
  for (const auto& pass : results.passes()) absl::StrAppend(&out, "\n", DecisionTable(pass));

  const std::string of = explanation.variant().empty() ? "" : absl::StrCat(" of ", Escaped(explanation.variant()));
  bool any_reason = false;
  for (const auto& row : explanation.placements()) any_reason = any_reason || !row.why().empty();
  std::vector<Column> columns = {{"op", Align::kLeft},     {"node", Align::kLeft},        {"runs in", Align::kLeft},
                                 {"kernel", Align::kLeft}, {"result lies", Align::kLeft}, {"bytes"}};
  if (any_reason) columns.push_back({"why not INT8", Align::kLeft});
  Table places(absl::StrCat("Where each op", of, " runs, at batch 1"), columns);
  Table crossings("Crossings between INT8 and float, in bytes a run",
                  {{"op", Align::kLeft}, {"node", Align::kLeft}, {"from, to", Align::kLeft}, {"bytes"}});
  int layouts = 0;
  for (const auto& row : explanation.placements()) {
    const std::string node = row.node().empty() ? "-" : Shortened(row.node(), kNameWidth);
    layouts += row.runs_in() == "layout";
    std::vector<std::string> cells = {row.op(),      node,
                                      row.runs_in(), row.kernel().empty() ? "none: a view" : row.kernel(),
                                      row.layout(),  absl::StrCat(row.bytes())};
    if (any_reason) cells.push_back(row.why());
    places.AddRow(std::move(cells));
    if (!row.crossing().empty()) {
      crossings.AddRow({row.op(), node, row.crossing(), absl::StrCat(row.crossing_bytes())});
    }
  }
  if (!places.empty()) absl::StrAppend(&out, out.empty() ? "" : "\n", places.ToString());
  if (!crossings.empty()) absl::StrAppend(&out, "\n", crossings.ToString());
  absl::StrAppend(&out, "\n", explanation.int8_ops(), " of ", explanation.ops(), " ops in INT8, ",
                  explanation.fp32_ops(), " in FP32, ", explanation.reference_ops(),
                  " by the reference. Changes of layout: ", layouts, ".\nCrossings move ", explanation.crossing_bytes(),
                  " of ", explanation.bytes(), " bytes a run (",
                  Share(explanation.crossing_bytes(), explanation.bytes()), ").\n");
  return out;
}

}  // namespace fuselage::report::sections

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

constexpr int kNameWidth = 28;
constexpr int kTargetWidth = 56;
constexpr int kListWidth = 36;

std::string ListText(const google::protobuf::RepeatedPtrField<std::string>& names) {
  return Shortened(absl::StrJoin(names, ", "), kListWidth);
}

// "changed", "new", "made of conv1, bn1"
std::string ChangeText(const Results::GraphTable::Row& row) {
  if (row.change().empty() || row.sources().empty()) return row.change();
  return absl::StrCat("made of ", ListText(row.sources()));
}

std::string GraphTitle(const Results::GraphTable& table) {
  std::string title = table.after() == "input" ? "Graph as read" : absl::StrCat("Graph after ", Escaped(table.after()));
  absl::StrAppend(&title, ": ", table.nodes(), " nodes");
  if (table.removed_size() > 0) {
    absl::StrAppend(&title, "; gone: ", Escaped(Shortened(absl::StrJoin(table.removed(), ", "), 2 * kListWidth)));
  }
  return title;
}

}  // namespace

// The graphs of print_graphs.
std::string Graphs(const Results& results, const Options&) {
  std::string out;
  for (const auto& graph : results.graphs()) {
    bool marked = false;
    for (const auto& row : graph.rows()) marked = marked || !row.change().empty();
    std::vector<Column> columns = {{"name", Align::kLeft},
                                   {"kind", Align::kLeft},
                                   {"target", Align::kLeft},
                                   {"inputs", Align::kLeft},
                                   {"users", Align::kLeft}};
    if (marked) columns.push_back({"change", Align::kLeft});
    Table table(GraphTitle(graph), columns);
    const int head = graph.rows_size() - graph.rows_size() / 2;
    for (int i = 0; i < graph.rows_size(); ++i) {
      const auto& row = graph.rows(i);
      if (graph.left_out() > 0 && i == head) {
        std::vector<std::string> cells(columns.size());
        cells[0] = absl::StrCat("... ", graph.left_out(), " more");
        table.AddRow(std::move(cells));
      }
      std::vector<std::string> cells = {Shortened(row.name(), kNameWidth), row.kind(),
                                        Shortened(row.target(), kTargetWidth), ListText(row.inputs()),
                                        ListText(row.users())};
      if (marked) cells.push_back(ChangeText(row));
      table.AddRow(std::move(cells));
    }
    absl::StrAppend(&out, out.empty() ? "" : "\n", table.ToString());
  }
  return out;
}

}  // namespace fuselage::report::sections

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "harness/report/cells.h"
#include "harness/report/measurement_rows.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

std::string MegabytesMoved(const std::optional<double>& bytes) {
  return bytes.has_value() ? Number(*bytes / 1e6, *bytes < 1e6 ? 4 : 2) : "-";
}

}  // namespace

// Bytes moved, and the roofline's prediction beside what was measured, on the fewest threads that were.
std::string Roofline(const Results& results, const Options&) {
  const std::vector<Row> rows = MeasurementRows(results);
  if (rows.empty()) return "";
  int threads = rows[0].measurement->threads();
  for (const Row& row : rows) threads = std::min(threads, row.measurement->threads());
  const bool measured =
      std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.measurement->has_measured_bytes(); });
  std::vector<Column> columns = {{"batch"}, {"variant", Align::kLeft}, {"MB counted"}};
  if (measured) columns.push_back({"MB measured"});
  for (const char* title : {"ms predicted", "ms measured", "gain predicted", "gain measured"}) {
    columns.push_back({title});
  }
  Table table(absl::StrCat("Bytes moved a run, and the roofline's prediction; threads: ", threads), columns);
  for (const Row& row : rows) {
    const auto& m = *row.measurement;
    if (m.threads() != threads || m.counted_bytes() == 0) continue;
    std::vector<std::string> cells = {absl::StrCat(m.batch()), row.variant->name(),
                                      MegabytesMoved(static_cast<double>(m.counted_bytes()))};
    if (measured) cells.push_back(MegabytesMoved(FUSELAGE_OPTIONAL(m, measured_bytes)));
    cells.push_back(Milliseconds(FUSELAGE_OPTIONAL(m, predicted_ms)));
    cells.push_back(Milliseconds(m.latency_ms().median()));
    cells.push_back(Times(FUSELAGE_OPTIONAL(m, predicted_speedup)));
    cells.push_back(SpeedupText(m));
    table.AddRow(std::move(cells));
  }
  if (table.empty()) return "";
  const std::string& counter = results.environment().memory_counter();
  return table.ToString() + (counter.empty() ? "" : absl::StrCat("MB measured: ", Escaped(counter), "\n"));
}

}  // namespace fuselage::report::sections

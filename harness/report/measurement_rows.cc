#include "harness/report/measurement_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "harness/report/cells.h"

namespace fuselage::report {

std::vector<Row> MeasurementRows(const Results& results) {
  std::vector<Row> rows;
  for (const auto* variant : All(results)) {
    for (const auto& measurement : variant->measurements()) rows.push_back({variant, &measurement});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    const auto key = [](const Row& row) {
      return std::make_pair(row.measurement->batch(), row.measurement->threads());
    };
    return key(a) < key(b);
  });
  return rows;
}

std::string SpeedupText(const Results::Measurement& measurement) {
  const std::string text = Times(FUSELAGE_OPTIONAL(measurement, speedup));
  return measurement.baseline_backend().empty() ? text : absl::StrCat(text, " over ", measurement.baseline_backend());
}

}  // namespace fuselage::report

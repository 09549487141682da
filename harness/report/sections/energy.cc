#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/cells.h"
#include "harness/report/measurement_rows.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {

// Where the config asks for it: by which counters, or why by none.
std::string Energy(const Results& results, const Options&) {
  const Results::Environment& environment = results.environment();
  if (environment.energy_counter().empty()) return "";
  const std::string unit = Unit(results);
  Table table(
      "Energy",
      {{"batch"}, {"threads"}, {"variant", Align::kLeft}, {absl::StrCat("J/", unit)}, {absl::StrCat("mg CO2/", unit)}});
  for (const Row& row : MeasurementRows(results)) {
    const auto& m = *row.measurement;
    if (!m.has_joules_per_image()) continue;
    table.AddRow({absl::StrCat(m.batch()), absl::StrCat(m.threads()), row.variant->name(),
                  absl::StrFormat("%.3g", m.joules_per_image()),
                  absl::StrFormat("%.3g", 1e3 * m.grams_co2_per_image())});
  }
  if (table.empty()) return absl::StrCat("Energy: ", Escaped(environment.energy_counter()), "\n");
  return absl::StrCat(table.ToString(), "by ", Escaped(environment.energy_counter()),
                      absl::StrFormat("; %g g CO2/kWh: ", environment.grams_co2_per_kwh()),
                      Escaped(environment.co2_source()), "\n");
}

}  // namespace fuselage::report::sections

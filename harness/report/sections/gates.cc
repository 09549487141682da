#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/report/cells.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {
namespace {

// A gate's number: 91.8, or 1e-05.
std::string Bound(const std::optional<double>& value) {
  if (!value.has_value()) return "-";
  return std::abs(*value) < 0.01 ? absl::StrFormat("%.2g", *value) : Number(*value, 2);
}

}  // namespace

std::string Gates(const Results& results, const Options&) {
  Table table("Gates", {{"gate", Align::kLeft},
                        {"of", Align::kLeft},
                        {"wanted"},
                        {"found"},
                        {"result", Align::kLeft},
                        {"reason", Align::kLeft}});
  for (const auto& gate : results.gates()) {
    const char* result = !gate.judged() ? "not judged" : gate.passed() ? "ok" : "FAILED";
    table.AddRow({gate.name(), gate.pass().empty() ? gate.variant() : absl::StrCat("pass ", gate.pass()),
                  Bound(gate.wanted()), Bound(FUSELAGE_OPTIONAL(gate, found)), result, gate.reason()});
  }
  return table.empty() ? "" : table.ToString();
}

}  // namespace fuselage::report::sections

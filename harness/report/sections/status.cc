#include "absl/strings/str_cat.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {

// Where the run broke off, that first.
std::string Status(const Results& results, const Options&) {
  if (results.status() == "complete") return "";
  return absl::StrCat("INCOMPLETE: ", Escaped(results.error()), "\n");
}

}  // namespace fuselage::report::sections

#include <string>

#include "absl/strings/str_cat.h"
#include "harness/report/sections.h"
#include "harness/report/table.h"

namespace fuselage::report::sections {

std::string Warnings(const Results& results, const Options&) {
  std::string out;
  for (const std::string& warning : results.warnings()) absl::StrAppend(&out, "warning: ", Escaped(warning), "\n");
  return out;
}

}  // namespace fuselage::report::sections

#include "harness/report/report.h"

#include "absl/strings/str_cat.h"
#include "harness/report/sections.h"

namespace fuselage::report {

std::string Report(const Results& results, const Options& options) {
  std::string out;
  const auto append = [&](const std::string& section) {
    if (!section.empty()) absl::StrAppend(&out, "\n", section);
  };
#define SECTION(name) append(sections::name(results, options));
#include "harness/report/sections.def"
#undef SECTION
  return out;
}

}  // namespace fuselage::report

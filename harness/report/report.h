// The report that a run ends with.
#ifndef FUSELAGE_HARNESS_REPORT_REPORT_H_
#define FUSELAGE_HARNESS_REPORT_REPORT_H_

#include <string>

#include "harness/results.pb.h"

namespace fuselage::report {

struct Options {
  int slowest_layers = 0;  // How many of them to show.
};

// All sections that have something to say (sections.def), an empty line before each.
std::string Report(const Results& results, const Options& options);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_REPORT_H_

// The sections of the report: each a text of whole lines, from the results alone; empty where they hold nothing for it.
#ifndef FUSELAGE_HARNESS_REPORT_SECTIONS_H_
#define FUSELAGE_HARNESS_REPORT_SECTIONS_H_

#include <string>

#include "harness/report/report.h"
#include "harness/results.pb.h"

namespace fuselage::report::sections {

#define SECTION(name) std::string name(const Results& results, const Options& options);
#include "harness/report/sections.def"
#undef SECTION

}  // namespace fuselage::report::sections

#endif  // FUSELAGE_HARNESS_REPORT_SECTIONS_H_

// report.html from a results.json of an earlier run.
#ifndef FUSELAGE_HARNESS_HTML_REDRAW_H_
#define FUSELAGE_HARNESS_HTML_REDRAW_H_

#include <string>

#include "absl/status/statusor.h"

namespace fuselage::html {

// Writes report.html beside `results_path`, against the results at `before_path` unless that is empty, and returns its
// path. InvalidArgument where a file is no results.json; AlreadyExists where a report.html is there that no run wrote.
absl::StatusOr<std::string> Redraw(const std::string& results_path, const std::string& before_path);

}  // namespace fuselage::html

#endif  // FUSELAGE_HARNESS_HTML_REDRAW_H_

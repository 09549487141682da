// report.html from a results.json of an earlier run.
#ifndef FUSELAGE_HARNESS_HTML_REDRAW_H_
#define FUSELAGE_HARNESS_HTML_REDRAW_H_

#include <string>

#include "absl/status/statusor.h"
#include "harness/results.pb.h"

namespace fuselage::html {

// The results.json at `path`; fields of a later version are left out. InvalidArgument where it is none.
absl::StatusOr<Results> ReadResults(const std::string& path);

// Writes report.html beside `results_path`, whose results these are, against those of `before` where that is not null,
// and returns its path. AlreadyExists where a report.html is there that no run wrote.
absl::StatusOr<std::string> Redraw(const std::string& results_path, const Results& results, const Results* before);

}  // namespace fuselage::html

#endif  // FUSELAGE_HARNESS_HTML_REDRAW_H_

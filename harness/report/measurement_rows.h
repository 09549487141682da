// The measurements of all variants and peers, as the rows of a table.
#ifndef FUSELAGE_HARNESS_REPORT_MEASUREMENT_ROWS_H_
#define FUSELAGE_HARNESS_REPORT_MEASUREMENT_ROWS_H_

#include <string>
#include <vector>

#include "harness/results.pb.h"

namespace fuselage::report {

struct Row {
  const Results::Variant* variant;
  const Results::Measurement* measurement;
};

// By batch, then threads, then variant.
std::vector<Row> MeasurementRows(const Results& results);

// "1.52x", or "12.00x over cpu" of a variant on another device.
std::string SpeedupText(const Results::Measurement& measurement);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_MEASUREMENT_ROWS_H_

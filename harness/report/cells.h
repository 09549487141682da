// The text of cells that several sections have.
#ifndef FUSELAGE_HARNESS_REPORT_CELLS_H_
#define FUSELAGE_HARNESS_REPORT_CELLS_H_

#include <optional>
#include <string>
#include <vector>

#include "harness/results.pb.h"

namespace fuselage::report {

// Protobuf's presence as std::optional.
#define FUSELAGE_OPTIONAL(message, field) \
  ((message).has_##field() ? std::optional<double>((message).field()) : std::nullopt)

// "-" where there is none, in all of these.
std::string ErrorText(const std::optional<double>& value);     // "2.5e-07", or "0".
std::string Times(const std::optional<double>& value);         // "1.52x"
std::string Milliseconds(const std::optional<double>& value);  // Three digits where a run takes microseconds.

std::string SignedMs(double value);  // "+0.12", "-0.034".
// "91.20 %", or bits per byte; "-" where nothing was judged.
std::string AccuracyText(const Results::Candidate& network);

bool HasDataset(const Results& results);
bool HasAccuracy(const Results& results);
std::string Unit(const Results& results);  // What a sample is: "image", or "sample" without a dataset.

// Variants, then peers: they share every column.
std::vector<const Results::Variant*> All(const Results& results);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_CELLS_H_

// Any protobuf message as JSON with its original field names.
#ifndef FUSELAGE_HARNESS_REPORT_JSON_H_
#define FUSELAGE_HARNESS_REPORT_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace fuselage::report {

// Every field is printed. Finite numbers are JSON numbers (protobuf's own printer makes strings of 64-bit integers); an
// `optional` field without a value is null; infinities and NaN are the strings "Infinity", "-Infinity" and "NaN"; bytes
// that are not UTF-8 become U+FFFD.
// Takes the field kinds that results.proto has: no maps, no bytes, no enums, no groups.
std::string ToJson(const google::protobuf::Message& message);

// A JSON string with its quotes.
std::string JsonString(absl::string_view text);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_JSON_H_

// Runs of one session as one: {resnet18, vit} => results whose `runs` are both, on the machine that they share.
#ifndef FUSELAGE_HARNESS_REPORT_MERGE_H_
#define FUSELAGE_HARNESS_REPORT_MERGE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "harness/results.pb.h"

namespace fuselage::report {

// Sessions among them (those with runs or steps) hand over what they hold. INCOMPLETE where one of the runs is.
// InvalidArgument: runs of different machines or builds, or two of one name; it says which, and what differs.
absl::StatusOr<Results> Merge(absl::Span<const Results::Run> runs);

}  // namespace fuselage::report

#endif  // FUSELAGE_HARNESS_REPORT_MERGE_H_

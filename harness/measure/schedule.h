// What one run of an executable does when and where.
#ifndef FUSELAGE_HARNESS_MEASURE_SCHEDULE_H_
#define FUSELAGE_HARNESS_MEASURE_SCHEDULE_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "harness/results.pb.h"
#include "runtime/executable.h"

namespace fuselage::harness {

// Records a few runs, and keeps the fastest: other programs disturbed it least. `threads` are the executable's.
absl::StatusOr<Results::Schedule> RecordSchedule(runtime::Executable& executable, absl::Span<const Tensor> inputs,
                                                 int threads);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_SCHEDULE_H_

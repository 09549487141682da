// Gates: what a config demands of its results.
#ifndef FUSELAGE_HARNESS_GATES_H_
#define FUSELAGE_HARNESS_GATES_H_

#include <vector>

#include "absl/status/status.h"
#include "harness/config.pb.h"
#include "harness/results.pb.h"

namespace fuselage::harness {

// The measurement that min_speedup judges.
struct GatedMeasurement {
  int batch = 1;
  int threads = 1;
};

// One entry for each gate and variant, or pass: passed, failed, or not judged where what it wants was not measured. A
// gate that no variant can be held to is an entry as well, which names none.
std::vector<Results::Gate> CheckGates(const HarnessConfig& config, const GatedMeasurement& measurement,
                                      const Results& results);

// A gate error that lists those that did not pass and are not excused, or OK.
absl::Status GateStatus(const std::vector<Results::Gate>& gates);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_GATES_H_

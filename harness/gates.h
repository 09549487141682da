// Gates: what a config demands of its results.
#ifndef FUSELAGE_HARNESS_GATES_H_
#define FUSELAGE_HARNESS_GATES_H_

#include <vector>

#include "absl/status/status.h"
#include "harness/config.pb.h"
#include "harness/results.pb.h"

namespace fuselage::harness {

// One entry for each gate and variant, or pass; what was not measured does not pass.
std::vector<Results::Gate> CheckGates(const HarnessConfig::Gates& gates, const Results& results);

// A gate error that lists the failed ones, or OK.
absl::Status GateStatus(const std::vector<Results::Gate>& gates);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_GATES_H_

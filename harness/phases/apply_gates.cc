#include <vector>

#include "harness/gates.h"
#include "harness/phases/phases.h"

namespace fuselage::harness::phases {

absl::Status ApplyGates(RunState& run) {
  const auto& batches = run.config.benchmark().batches();
  const GatedMeasurement measurement = {batches.empty() ? 1 : batches[0], run.threads[0]};
  const std::vector<Results::Gate> gates = CheckGates(run.config, measurement, run.recorder.Snapshot());
  run.recorder.Update([&](Results& results) {
    for (const Results::Gate& gate : gates) *results.add_gates() = gate;
  });
  return GateStatus(gates);
}

}  // namespace fuselage::harness::phases

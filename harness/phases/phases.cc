#include "harness/phases/phases.h"

#include "ir/base/status.h"

namespace fuselage::harness::phases {

absl::Status Run(absl::Span<const Phase> phases, RunState& run) {
  for (Phase phase : phases) RETURN_IF_ERROR(phase(run));
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

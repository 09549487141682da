// One run of the harness: its phases, one after another. The library behind the binary.
#ifndef FUSELAGE_HARNESS_RUN_H_
#define FUSELAGE_HARNESS_RUN_H_

#include "absl/status/status.h"
#include "harness/recorder.h"
#include "harness/report/progress.h"
#include "harness/request.h"

namespace fuselage::harness {

// Fills the recorder as it goes; the caller finishes it. A missed gate is a gate error, after everything was measured.
absl::Status RunHarness(const RunRequest& request, report::Progress& progress, Recorder& recorder);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_RUN_H_

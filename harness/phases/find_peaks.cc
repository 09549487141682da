#include "absl/strings/str_cat.h"
#include "harness/base/machine_load.h"
#include "harness/environment.h"
#include "harness/measure/peaks.h"
#include "harness/phases/phases.h"
#include "ir/base/status.h"

namespace fuselage::harness::phases {

absl::Status FindPeaks(RunState& run) {
  // Passes weigh by them, and variants are predicted.
  if (run.config.pipeline().steps().empty() && run.variants.empty()) return absl::OkStatus();
  run.progress.Begin("machine peaks");
  const std::string file = run.request.cache_folder.empty() ? "" : PeaksFile(run.request.cache_folder);
  absl::StatusOr<Results::Peaks> peaks = absl::NotFoundError("");
  if (!file.empty()) peaks = ReadPeaks(file);
  if (!peaks.ok()) {
    const MachineLoad load;
    ASSIGN_OR_RETURN(peaks, MeasurePeaks(run.library.ops, run.library.kernels));
    peaks->set_measured(UtcNow());
    if (load.OtherCores().value_or(0) > kQuietCores) {
      run.Warn("the machine's peaks were measured beside other programs; --remeasure_peaks when it is quiet");
    }
    if (!file.empty()) {
      const absl::Status kept = WritePeaks(file, *peaks);
      if (!kept.ok()) run.Warn(absl::StrCat("the machine's peaks are not kept: ", kept.message(), "; see --no_cache"));
    }
  }
  run.peaks = ToMachinePeaks(*peaks);
  run.recorder.Update([&](Results& results) { *results.mutable_environment()->mutable_peaks() = *peaks; });
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

#include "harness/run.h"

#include "harness/environment.h"
#include "harness/phases/phases.h"
#include "harness/phases/run_state.h"
#include "ir/base/status.h"

namespace fuselage::harness {
namespace {

absl::Status RunPhases(RunState& run) {
  RETURN_IF_ERROR(phases::Run(phases::kCompile, run));
  if (run.request.explain) return phases::Run(phases::kExplain, run);
  return run.request.accuracy_only ? phases::Run(phases::kJudge, run) : phases::Run(phases::kMeasure, run);
}

}  // namespace

absl::Status RunHarness(const RunRequest& request, report::Progress& progress, Recorder& recorder) {
  recorder.Update([&](Results& results) {
    results.set_config(request.name);
    results.set_title(request.config.title());
    results.set_config_text(request.config.DebugString());
    *results.mutable_environment() = DescribeEnvironment(request.search);
  });
  RunState run(request, progress, recorder);
  const absl::Status status = RunPhases(run);
  progress.End();
  recorder.Update([&](Results& results) {
    for (const auto& [name, seconds] : progress.phases()) {
      auto* phase = results.add_phases();
      phase->set_name(name);
      phase->set_seconds(seconds);
    }
  });
  return status;
}

}  // namespace fuselage::harness

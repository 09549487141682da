#include "harness/run.h"

#include "harness/environment.h"
#include "harness/session.h"
#include "ir/base/status.h"

namespace fuselage::harness {

absl::Status RunHarness(const RunRequest& request, report::Progress& progress, Recorder& recorder) {
  recorder.Update([&](Results& results) {
    results.set_config(request.name);
    results.set_title(request.config.title());
    results.set_config_text(request.config.DebugString());
    *results.mutable_environment() = DescribeEnvironment(request.search);
  });
  Session session(request, progress, recorder);
  const auto run = [&]() -> absl::Status {
    RETURN_IF_ERROR(session.CheckVariants());
    RETURN_IF_ERROR(session.OpenDatasets());
    RETURN_IF_ERROR(session.LoadModel());
    RETURN_IF_ERROR(session.FindPeaks());
    RETURN_IF_ERROR(session.RunPasses());
    RETURN_IF_ERROR(session.SaveOnnx());
    if (request.explain) return session.ExplainPasses();
    RETURN_IF_ERROR(session.PlaceBaseline());
    RETURN_IF_ERROR(session.MeasureAccuracy());
    RETURN_IF_ERROR(session.SaveOutputs());
    RETURN_IF_ERROR(session.MeasureLatency());
    RETURN_IF_ERROR(session.MeasureLayers());
    return session.ApplyGates();
  };
  const absl::Status status = run();
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

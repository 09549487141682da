#include <vector>

#include "harness/measure/schedule.h"
#include "harness/phases/phases.h"
#include "harness/report/trace.h"
#include "ir/base/status.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness::phases {

absl::Status RecordSchedules(RunState& run) {
  const int64_t batch = run.FirstMeasuredBatch();
  if (batch == 0) return absl::OkStatus();
  run.progress.Begin("timeline");
  for (const int threads : run.threads) {
    runtime::ThreadPool pool(threads);
    for (size_t i = 0; i < run.variants.size(); ++i) {
      const Variant& variant = run.variants[i];
      if (!variant.runs() || variant.engine.backend == "reference") continue;
      ASSIGN_OR_RETURN(const auto engine, run.MakeEngine(variant, batch, &pool));
      ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, run.inputs->Batch(0, engine->input_types()));
      ASSIGN_OR_RETURN(Results::Schedule schedule, RecordSchedule(*engine->executable(), inputs, threads));
      run.recorder.Update([&](Results& results) {
        *results.mutable_variants(static_cast<int>(i))->add_schedules() = std::move(schedule);
      });
    }
  }
  run.recorder.WriteFile("trace.json", report::Trace(run.recorder.Snapshot()));
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

#include "absl/strings/str_cat.h"
#include "harness/phases/phases.h"
#include "kernels/core/isa.h"

namespace fuselage::harness::phases {

// --backend=cuda means every variant, but FP32 has CUDA kernels only where cuDNN is, and not for every operator: there
// the baseline stays on the CPU, unless it is to be FP16.
absl::Status PlaceBaseline(RunState& run) {
  if (run.variants.size() < 2 || run.variants[0].engine.backend != "cuda" || !run.BaselineRuns())
    return absl::OkStatus();
  Variant& baseline = run.variants[0];
  if (baseline.config->precision() == "fp16") return absl::OkStatus();
  const auto engine = run.MakeEngine(baseline, 1, run.pool.get());
  if (engine.ok() || !absl::IsUnimplemented(engine.status())) return engine.status();
  baseline.engine.backend = "cpu";
  run.Warn(absl::StrCat("variant ", baseline.name(),
                        " runs on the CPU: it has operators without CUDA kernels (FP32 wants cuDNN)"));
  run.recorder.Update([&](Results& results) {
    results.mutable_variants(0)->set_backend(baseline.engine.backend);
    results.mutable_variants(0)->set_isa(std::string(kernels::IsaName(baseline.engine.isa)));
  });
  return absl::OkStatus();
}

}  // namespace fuselage::harness::phases

#include "harness/phases/pass_environment.h"

#include <algorithm>

#include "compiler/calibration_runner.h"

namespace fuselage::harness::phases {
namespace {

// Of what the variants may use, where it is the same for all (--isa); else of all that the machine has.
compiler::ProfilerOptions Profiling(const RunState& run, const std::string& cache_folder) {
  compiler::ProfilerOptions options = run.request.profiling;
  options.cache_folder = cache_folder;
  const auto& variants = run.variants;
  const auto differs = [](const Variant& a, const Variant& b) { return a.engine.isa != b.engine.isa; };
  const bool same = std::adjacent_find(variants.begin(), variants.end(), differs) == variants.end();
  if (!variants.empty() && same) options.executable.isa = variants[0].engine.isa;
  return options;
}

}  // namespace

PassEnvironment::PassEnvironment(RunState& run, const std::string& cache_folder)
    : profiler_(run.library.kernels, Profiling(run, cache_folder)) {
  if (run.calibration_samples != nullptr) {
    compiler::CalibrationOptions options;
    options.samples = run.CalibrationSamples();
    options.max_memory_bytes = run.request.max_memory_bytes;
    options.progress = [&run](int done) { run.progress.Update(done, run.CalibrationSamples(), "calibration samples"); };
    if (!cache_folder.empty()) options.parts = std::max(1, run.config.calibration().parts());
    runner_ = std::make_unique<compiler::CalibrationRunner>(*run.calibration_samples, run.pool.get(), options);
  }
  environment_.runner = runner_.get();
  environment_.kernels = &run.library.kernels;
  environment_.peaks = run.peaks.has_value() ? &*run.peaks : nullptr;
  environment_.cache_folder = cache_folder;
  environment_.profiler = &profiler_;
}

}  // namespace fuselage::harness::phases

// What passes may need beyond the graph, in a run of the harness.
#ifndef FUSELAGE_HARNESS_PHASES_PASS_ENVIRONMENT_H_
#define FUSELAGE_HARNESS_PHASES_PASS_ENVIRONMENT_H_

#include <memory>
#include <string>

#include "compiler/profiler.h"
#include "harness/phases/run_state.h"
#include "passes/core/pass.h"

namespace fuselage::harness::phases {

// The run's calibration samples, kernels, peaks, and a profiler. `cache_folder`: for what passes keep; empty: nothing.
class PassEnvironment {
 public:
  PassEnvironment(RunState& run, const std::string& cache_folder);
  PassEnvironment(const PassEnvironment&) = delete;
  PassEnvironment& operator=(const PassEnvironment&) = delete;

  const passes::PassEnvironment& get() const { return environment_; }

 private:
  std::unique_ptr<passes::Runner> runner_;  // Null without calibration samples.
  compiler::Profiler profiler_;
  passes::PassEnvironment environment_;
};

}  // namespace fuselage::harness::phases

#endif  // FUSELAGE_HARNESS_PHASES_PASS_ENVIRONMENT_H_

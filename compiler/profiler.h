// The pipeline's Profiler: runs a graph on this machine's kernels and takes the time of each call.
#ifndef FUSELAGE_COMPILER_PROFILER_H_
#define FUSELAGE_COMPILER_PROFILER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/core/registry.h"
#include "passes/core/pass.h"
#include "runtime/executable.h"

namespace fuselage::compiler {

struct ProfilerOptions {
  runtime::ExecutableOptions executable;
  double seconds = 0.3;  // How long to run a graph; at least
  int repetitions = 10;  // so often, after one run that is not counted.
  // Keeps timings of a graph on a machine by a program: choices by time are then the same again. Empty: nothing is
  // kept.
  std::string cache_folder;
};

// On one thread, at the graph's batch size. Inputs are small numbers; integers are 0. Borrows `kernels`. A file of the
// cache that cannot be believed, or not be written, counts as none.
class Profiler : public passes::Profiler {
 public:
  explicit Profiler(const kernels::KernelRegistry& kernels, ProfilerOptions options = {})
      : kernels_(kernels), options_(std::move(options)) {}

  absl::StatusOr<std::vector<Call>> Profile(const ir::Graph& graph) override;

 private:
  absl::StatusOr<std::vector<Call>> Measure(const ir::Graph& graph) const;

  const kernels::KernelRegistry& kernels_;
  const ProfilerOptions options_;
};

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_PROFILER_H_

// The pipeline's Profiler: runs graphs on this machine's kernels and takes the time of each call.
#ifndef FUSELAGE_COMPILER_PROFILER_H_
#define FUSELAGE_COMPILER_PROFILER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/registry.h"
#include "passes/core/pass.h"
#include "runtime/executable.h"

namespace fuselage::compiler {

struct ProfilerOptions {
  runtime::ExecutableOptions executable;
  // Each graph runs for so long, but at least so often; in so many turns, of which each begins with a run that does not
  // count.
  double seconds = 0.3;
  int repetitions = 10;
  // Keeps timings of graphs on a machine by a program: choices by time are then the same again. Empty: nothing is kept.
  std::string cache_folder;
  // Nothing runs: timings are those of this folder, whatever machine and program took them, so that compiling is the same
  // anywhere. NotFound where it has none of the graphs, FailedPrecondition where it has several. Empty: no replay.
  std::string replay_folder;
};

// On one thread, at the graph's batch size. Inputs are small numbers; integers are 0. Borrows `kernels`. A file of the
// cache that cannot be believed, or not be written, counts as none; in a replay the former is an error (DataLoss).
class Profiler : public passes::Profiler {
 public:
  explicit Profiler(const kernels::KernelRegistry& kernels, ProfilerOptions options = {})
      : kernels_(kernels), options_(std::move(options)) {}

  absl::StatusOr<std::vector<std::vector<Call>>> Profile(absl::Span<const ir::Graph* const> graphs) override;

 private:
  absl::StatusOr<std::vector<std::vector<Call>>> Measure(absl::Span<const ir::Graph* const> graphs) const;

  const kernels::KernelRegistry& kernels_;
  const ProfilerOptions options_;
};

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_PROFILER_H_

// Runs a sweep's units, beside any number of other processes that do the same, and puts the results together.
//
// What processes share is a folder, on one machine or on a file system that all see: no message passes between them, so
// any of them may come late, be slow, or die. `mpirun -n 64` or `srun -n 64` starts them as well as a shell's `&` does.
//
//   units/<key>/               an output folder as every run has it; done when its results.json is complete
//   units/<key>.claim          locked by the process that runs the unit: the system frees it when that process ends
//   units/<key>.failures       a line for each attempt that failed; without it a unit that failed is tried again
//   sweep.json                 SweepResults of all units, the same bytes whoever ran what
#ifndef FUSELAGE_HARNESS_SWEEP_SWEEP_H_
#define FUSELAGE_HARNESS_SWEEP_SWEEP_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "harness/sweep/sweep.pb.h"
#include "harness/sweep/units.h"

namespace fuselage::harness::sweep {

// Runs the unit into `folder`, whose results.json is complete where that ends well.
using RunUnit = std::function<absl::Status(const Unit& unit, const std::string& folder)>;

struct SweepOptions {
  std::string folder;
  int attempts = 2;
  // Where in the list this process begins, so that several do not ask for the same unit first.
  int first = 0;
  bool merge = true;  // Writes sweep.json, for which all results are read.
  std::function<void(const std::string& line)> progress;
};

// Returns when every unit has a result, by this process or another, or has failed as often as it may. What is
// done already, by an earlier run, is not run again. Empty without `merge`. Errors are the folder's.
absl::StatusOr<SweepResults> RunUnits(const std::vector<Unit>& units, const SweepOptions& options,
                                      const RunUnit& run_unit);

// The parts of one row: figures of all samples together. Counts of images are exact; means are weighted in this order.
std::vector<Results::Variant> MergeShards(const std::vector<Results>& shards);

}  // namespace fuselage::harness::sweep

#endif  // FUSELAGE_HARNESS_SWEEP_SWEEP_H_

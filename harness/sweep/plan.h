// A sweep's file, as the units that it asks for.
#ifndef FUSELAGE_HARNESS_SWEEP_PLAN_H_
#define FUSELAGE_HARNESS_SWEEP_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/base/files.h"
#include "harness/flags.h"
#include "harness/sweep/sweep.h"
#include "harness/sweep/units.h"

namespace fuselage::harness::sweep {

struct Plan {
  std::string name;  // The file's, without its extension.
  Sweep sweep;
  std::vector<Unit> units;
};

// What `flags.config` names; the other flags are applied to the config that it varies. Usage errors as of LoadConfig.
absl::StatusOr<Plan> LoadPlan(const Flags& flags, const SearchPath& search,
                              const std::vector<std::string>& pass_options);

// Which of the processes that mpirun or srun started this one is: 0 of 1 where none of them did.
struct Rank {
  int rank = 0, ranks = 1;
};
Rank RankOfProcess();

// A table of the rows, and what failed.
std::string ToText(const SweepResults& results);

}  // namespace fuselage::harness::sweep

#endif  // FUSELAGE_HARNESS_SWEEP_PLAN_H_

// Which groups of layers to leave in FP32: a search by what each does alone, verified on whole networks.
//
// Groups stand in the order of what leaving them in FP32 is worth: harm in INT8 over time that INT8 gains. How many of
// the first ones stay there is found by doubling and then halving; what is left over of the budget is spent by trying
// one group at a time. The same measurements give the same choice.
#ifndef FUSELAGE_HARNESS_DECIDE_MIXED_PRECISION_H_
#define FUSELAGE_HARNESS_DECIDE_MIXED_PRECISION_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace fuselage::harness {

// A group alone.
struct LayerGroup {
  double harm = 0;     // The error that it makes in INT8; additive, at least 0, NaN counts as infinite.
  double gain_ms = 0;  // The time that INT8 saves there.
};

// A network with some groups in FP32.
struct Verdict {
  bool within = false;  // The budget.
  double cost = 0;      // The less the better, among those within,
  double noise = 0;     // known up to this: of two that it does not tell apart, the one with fewer groups in FP32.
};

struct MixedPrecisionOptions {
  // FP32 in more groups: true, it is what leads into the budget, and time is the cost (a bound on the error); false, it
  // is what leads out of it, and the error is the cost (a bound on the time).
  bool fp32_helps = true;
  int evaluations = 24;  // Networks to try, at most.
};

struct MixedPrecision {
  std::vector<int> fp32;  // The groups, ascending.
  Verdict verdict;        // Not within: nothing that was tried is; this comes nearest by its size.
  int evaluations = 0;
};

// `evaluate`: the verdict on the network with these groups, ascending, in FP32; called once for each set.
absl::StatusOr<MixedPrecision> SearchMixedPrecision(
    const std::vector<LayerGroup>& groups, const MixedPrecisionOptions& options,
    const std::function<absl::StatusOr<Verdict>(const std::vector<int>& fp32)>& evaluate);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_DECIDE_MIXED_PRECISION_H_

// What must hold of every pass on every graph.
#ifndef FUSELAGE_PASSES_TESTING_PROPERTIES_H_
#define FUSELAGE_PASSES_TESTING_PROPERTIES_H_

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "passes/core/pass.h"

namespace fuselage::testing {

// The interpreter's outputs on SeededTensor inputs.
absl::StatusOr<std::vector<Tensor>> OutputsOnSeededInputs(const ir::Graph& graph, uint64_t seed = 1);

// Calibration samples through the interpreter: the inputs above by each of these seeds.
constexpr uint64_t kSampleSeeds[] = {1, 101, 201};
std::unique_ptr<passes::Runner> SeededRunner();

struct PassOutcome {
  bool changed = false;
  int applied = 0;  // Remarks.
  // The outputs against those before; only for a pass that quantizes, and outputs that moved and have a range.
  double worst_snr_db = std::numeric_limits<double>::infinity();
};

// Runs `pass` and checks:
//   the graph verifies; the changed bit tells whether its text differs; a second run changes nothing;
//   outputs keep their types, and their values as far as the pass's numeric contract says:
//     kBitExact   the same bytes
//     kTolerance  max |difference| <= tolerance * max(|output|, 0.01), of each output
//     kOneCode    a root mean square difference of at most 1/32 of max |output| (30 dB, as the pipeline has it), or of
//                 at most a step of the coarsest codes in the graph: where they are few, one is more than that
//     kQuantizes  what rounding may do (rounding.h), for a graph calibrated by SeededRunner, by the extremes. Finite
//                 values stay finite.
// `rounded`: the graph rounds what arithmetic computes (it holds codes behind it), so that a difference within the
// tolerance may flip a code; then kTolerance is checked as kOneCode is.
// Internal says what does not hold: "<pass>: <what>: ...".
absl::StatusOr<PassOutcome> CheckPass(const passes::Pass& pass, bool rounded, ir::Graph& graph);

// One after the other, each on what the one before left.
absl::Status CheckPasses(absl::Span<const passes::Pass* const> passes, bool rounded, ir::Graph& graph);

}  // namespace fuselage::testing

#endif  // FUSELAGE_PASSES_TESTING_PROPERTIES_H_

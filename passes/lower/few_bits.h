// Weights of few bits, as networks have them that were trained so: codes times a power of two, whose scales are divided
// by it, are the same weights to the bit. A bias becomes steps of input scale times weight scale (docs/arithmetic.md),
// which are a hundredth of an output's step where weights have eight bits, and half of one where they have two.
#ifndef FUSELAGE_PASSES_LOWER_FEW_BITS_H_
#define FUSELAGE_PASSES_LOWER_FEW_BITS_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"

namespace fuselage::lower {

// Of each layer with a float bias whose result becomes codes: the largest code is then between 33 and 64, seven bits,
// which every instruction set multiplies at full speed. Whether there was one with smaller codes.
absl::StatusOr<bool> WidenWeights(ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::lower

#endif  // FUSELAGE_PASSES_LOWER_FEW_BITS_H_

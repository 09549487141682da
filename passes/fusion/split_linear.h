// A layer whose channels are read apart becomes a layer for each reader:
//
//   y = linear(x, [w_a; w_b]); a = slice(y); b = slice(y)  =>  a = linear(x, w_a); b = linear(x, w_b)
//
// The parts are slices, or elements of a split, of the channels or of an axis that a reshape makes the outermost of
// theirs, behind permutes too: q, k and v of an attention layer, as most exporters write them. Nothing is copied then,
// and each part may have a scale of its own; but the input is read again and there may be more calls: the roofline
// decides. The inverse is horizontal.h.
#ifndef FUSELAGE_PASSES_FUSION_SPLIT_LINEAR_H_
#define FUSELAGE_PASSES_FUSION_SPLIT_LINEAR_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/pass.h"

namespace fuselage::fusion {

absl::StatusOr<bool> SplitLinears(const passes::MachinePeaks& peaks, ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::fusion

#endif  // FUSELAGE_PASSES_FUSION_SPLIT_LINEAR_H_

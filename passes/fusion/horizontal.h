// Layers side by side become one:
//
//   a = linear(x, w_a); b = linear(x, w_b)  =>  y = linear(x, [w_a; w_b]); (a, b) = split(y)
//
// For linears and for 1x1 convolutions that share their input and differ only in their parameters. Quantized weights
// keep the scales of their parts, per channel. The input is read once, and there are fewer calls, but the split copies
// every result: the roofline decides. Codes have the same bits either way. The inverse is split_linear.h.
#ifndef FUSELAGE_PASSES_FUSION_HORIZONTAL_H_
#define FUSELAGE_PASSES_FUSION_HORIZONTAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/pass.h"

namespace fuselage::fusion {

// Why a layer's weight is not its call's alone, so that a copy of it would be one more; empty where it is.
std::string SharedWeight(const ir::Node& layer);

absl::StatusOr<bool> FuseHorizontally(const passes::MachinePeaks& peaks, ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::fusion

#endif  // FUSELAGE_PASSES_FUSION_HORIZONTAL_H_

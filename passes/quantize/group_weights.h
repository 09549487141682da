// Weights in groups.
#ifndef FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_
#define FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_

#include <vector>

#include "absl/status/status.h"
#include "ir/graph.h"
#include "passes/quantize/weight_grid.h"

namespace fuselage::quantize {

// Makes of each linear, a module's call, a function whose weight is dequantize_mxfp4 or dequantize_groups of constants
// (ir/ops/dynamic_quantize), as the format says. What shares a weight shares its codes.
absl::Status UseGroupWeights(const std::vector<ir::Node*>& linears, const WeightFormat& format, ir::Graph& graph);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_

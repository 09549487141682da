// Weights in groups.
#ifndef FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_
#define FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "passes/quantize/weight_grid.h"

namespace fuselage::quantize {

// Its quantized form takes a scale for each row of its input: a linear, a module's call.
bool TakesRows(const ir::Node& node);

// The weights of such nodes that stay in the four bits that they have, by parameter: the size of their groups. None
// where the options say so.
HashMap<std::string, int64_t> FourBitWeights(const QuantizeOptions& options, const ir::Graph& graph);

struct GroupedLinear {
  ir::Node* node;  // A module's call.
  WeightFormat format;
};

// Makes of each a function whose weight is dequantize_mxfp4 or dequantize_groups of constants
// (ir/ops/dynamic_quantize), as the format says. What shares a weight shares its format and its codes.
absl::Status UseGroupWeights(const std::vector<GroupedLinear>& linears, ir::Graph& graph);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_

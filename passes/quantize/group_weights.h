// Weights in groups.
#ifndef FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_
#define FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "passes/quantize/weight_grid.h"

namespace fuselage::quantize {

// Its quantized form takes a scale for each row of its input: a linear, a module's call.
bool TakesRows(const ir::Node& node);

// Finds weights that stay in the four bits that they have. Each is looked at once, though several graphs have it.
class FourBitWeights {
 public:
  // The large ones of nodes that TakesRows, by parameter: the size of their groups. None where the options say so.
  HashMap<std::string, int64_t> Find(const QuantizeOptions& options, const ir::Graph& graph);

 private:
  HashMap<std::shared_ptr<const Tensor>, std::optional<int64_t>> found_;
};

struct GroupedLinear {
  ir::Node* node;  // A module's call.
  WeightFormat format;
};

// Makes of each a function whose weight is dequantize_mxfp4 or dequantize_groups of constants
// (ir/ops/dynamic_quantize), as the format says. What shares a weight shares its format and its codes.
absl::Status UseGroupWeights(const std::vector<GroupedLinear>& linears, ir::Graph& graph);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_GROUP_WEIGHTS_H_

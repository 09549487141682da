#include "passes/quantize/recurrent.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/core/quantized_form.h"

namespace fuselage::quantize {
namespace {

// Of a GRU of 32 units and inputs, which takes as long in FP32 as on codes.
constexpr int64_t kLeastWeights = 6144;

}  // namespace

std::string WhyNotRecurrent(const QuantizeOptions& options, const ir::Node& node) {
  const std::vector<const ir::OperandSpec*> weights = passes::WeightsOf(*node.op());
  if (weights.size() < 2) return "";  // The second one multiplies the state.
  const int64_t least = options.has_least_recurrent_weights() ? options.least_recurrent_weights() : kLeastWeights;
  int64_t elements = 0;
  for (const ir::OperandSpec* operand : weights) {
    const Tensor& weight = *node.graph().ParameterOfOrNull(node, operand->name);
    elements += weight.num_elements() / weight.dim(0);  // [directions, ...]
  }
  if (elements >= least) return "";
  return absl::StrCat("kept in FP32: ", elements, " weights in a direction, fewer than ", least,
                      " (option least_recurrent_weights)");
}

}  // namespace fuselage::quantize

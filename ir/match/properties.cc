#include "ir/match/properties.h"

#include <limits>
#include <vector>

namespace fuselage::match {

using ir::Node;

bool IsF32(const Node& value) { return value.type().is_tensor() && value.tensor_type().dtype == DType::kF32; }

bool IsConvolution(const Node& node) { return node.IsOp("conv1d") || node.IsOp("conv2d") || node.IsOp("conv3d"); }

bool ConvertsAll(const Node& node) {
  if ((!node.IsOp("quantize") && !node.IsOp("dequantize")) || node.num_operands() > 1) return false;
  const TensorType& codes = (node.IsOp("quantize") ? node : *node.operand(0)).tensor_type();
  return codes.quant ? codes.quant->per_tensor() : node.attribute("axis").as_int() < 0;
}

int ChannelAxis(const Node& layer, const TensorType& value) { return layer.IsOp("linear") ? value.rank() - 1 : 1; }

bool TakesAll(const Node& slice) {
  const std::vector<int64_t>& axes = slice.attribute("axes").as_ints();
  const std::vector<int64_t>& ends = slice.attribute("ends").as_ints();
  const std::vector<int64_t>& steps = slice.attribute("steps").as_ints();
  const int64_t rank = slice.tensor_type().rank();
  for (size_t i = 0; i < ends.size(); ++i) {
    const bool is_batch = axes.empty() ? i == 0 : axes[i] == 0 || axes[i] == -rank;
    if ((is_batch && ends[i] < std::numeric_limits<int32_t>::max()) || (!steps.empty() && steps[i] < 0)) return false;
  }
  return slice.type() == slice.operand(0)->type();
}

}  // namespace fuselage::match

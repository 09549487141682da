#include "passes/lower/codes.h"

#include <cstdint>
#include <vector>

namespace fuselage::lower {

using ir::Node;

bool HasCodes(const Node& node) {
  if (!node.type().is_tensor()) return false;
  const TensorType& type = node.tensor_type();
  return type.quant && type.quant->per_tensor() && (type.dtype == DType::kU8 || type.dtype == DType::kI8);
}

bool SameCodes(const Node& a, const Node& b) {
  return HasCodes(a) && HasCodes(b) && a.tensor_type().dtype == b.tensor_type().dtype &&
         a.tensor_type().quant == b.tensor_type().quant;
}

Node* CodesOrNull(const Node& dequantize) {
  Node* codes = dequantize.operand(0);
  if (!HasCodes(*codes)) return nullptr;
  if (dequantize.IsOp("int8.dequantize")) return codes;
  if (dequantize.num_operands() > 1) return nullptr;
  const std::vector<double>& scales = dequantize.attribute("scales").as_floats();
  if (scales.empty()) return codes;
  const std::vector<int64_t>& zero_points = dequantize.attribute("zero_points").as_ints();
  const QuantParams& quant = *codes->tensor_type().quant;
  const bool same = scales.size() == 1 && static_cast<float>(scales[0]) == quant.scale() &&
                    (zero_points.empty() ? 0 : zero_points[0]) == quant.zero_point();
  return same ? codes : nullptr;
}

}  // namespace fuselage::lower

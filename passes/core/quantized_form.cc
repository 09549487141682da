#include "passes/core/quantized_form.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace fuselage::passes {

bool IsQuantizedOp(const ir::Node& node) {
  if (node.op() == nullptr) return false;
  const std::string& op = node.op()->name;
  return op == "quantize" || absl::StartsWith(op, "dequantize") || absl::StartsWith(op, "int8.");
}

AttributeMap FormAttributes(const ir::Node& node, const ir::OpSchema& form) {
  AttributeMap attributes;
  for (const ir::AttributeSpec& spec : form.attributes) {
    if (node.op()->FindAttributeOrNull(spec.name) != nullptr) {
      attributes.emplace(spec.name, node.attribute(spec.name));
    } else if (spec.default_value) {
      attributes.emplace(spec.name, *spec.default_value);
    }
  }
  return attributes;
}

bool TakesAsItIs(const ir::Node& node, const ir::OpSchema& form, int operand) {
  std::vector<const ir::Type*> types = node.graph().OperandTypes(node);
  const ir::Type* const own = &node.operand(operand)->type();
  std::vector<ir::Type> codes;
  codes.reserve(types.size());
  for (const ir::Type*& type : types) {
    if (type == nullptr || type == own || !type->is_tensor()) continue;
    type = &codes.emplace_back(TensorType{DType::kU8, type->tensor().shape, PerTensor(1), Layout::kRowMajor});
  }
  return ir::Infer(form, FormAttributes(node, form), std::move(types)).ok();
}

}  // namespace fuselage::passes

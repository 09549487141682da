#include "passes/core/quantized_form.h"

#include <algorithm>
#include <string>
#include <utility>
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

std::vector<const ir::OperandSpec*> WeightsOf(const ir::OpSchema& op) {
  std::vector<const ir::OperandSpec*> weights;
  for (const ir::OperandSpec& operand : op.operands) {
    if (operand.channel_axis >= 0) weights.push_back(&operand);
  }
  return weights;
}

absl::StatusOr<ir::Type> InferForm(const ir::Node& node, const ir::OpSchema& form, const std::vector<int>& operands) {
  std::vector<ir::Type> codes;
  std::vector<const ir::Type*> types;
  const std::vector<ir::Argument> arguments = node.arguments();
  codes.reserve(arguments.size());
  for (const ir::Argument& argument : arguments) {
    const ir::Type* own = argument.value != nullptr       ? &argument.value->type()
                          : argument.parameter != nullptr ? &argument.parameter->type
                                                          : nullptr;
    types.push_back(own);
    if (own == nullptr || !own->is_tensor()) continue;
    const bool weight = argument.spec->channel_axis >= 0 && !own->tensor().quant;
    if (!weight && std::find(operands.begin(), operands.end(), argument.index) == operands.end()) continue;
    types.back() = &codes.emplace_back(
        TensorType{weight ? DType::kI8 : DType::kU8, own->tensor().shape, PerTensor(1), Layout::kRowMajor});
  }
  while (!types.empty() && types.back() == nullptr) types.pop_back();
  return ir::Infer(form, FormAttributes(node, form), std::move(types));
}

bool TakesAsItIs(const ir::Node& node, const ir::OpSchema& form, int operand) {
  std::vector<int> others;
  for (const ir::Argument& argument : node.arguments()) {
    if (argument.value != nullptr && !argument.spec->parameter && argument.index != operand) {
      others.push_back(argument.index);
    }
  }
  if (InferForm(node, form, others).ok()) return true;
  return operand != 0 && InferForm(node, form, {0}).ok();
}

}  // namespace fuselage::passes

#include "ir/match/bytes.h"

#include <algorithm>

#include "ir/match/properties.h"

namespace fuselage::match {
namespace {

using ir::Node;

// The one operand that is no constant; null where there is none, or several.
Node* VariableOf(const Node& node) {
  Node* variable = nullptr;
  for (Node* operand : node.operands()) {
    if (operand == nullptr || operand->kind() == ir::NodeKind::kGetAttr || operand == variable) continue;
    if (variable != nullptr) return nullptr;
    variable = operand;
  }
  return variable;
}

bool HasParameters(const Node& node) { return node.module() != nullptr && !node.module()->parameters.empty(); }

}  // namespace

std::vector<Node*> ChainFromBytes(const Node& node) {
  if (!node.type().is_tensor()) return {};
  std::vector<Node*> chain;
  for (Node* value = VariableOf(node); value != nullptr; value = VariableOf(*value)) {
    if (value->op() == nullptr || !IsF32(*value) || value->tensor_type().shape != node.tensor_type().shape) return {};
    chain.push_back(value);
    if (value->IsOp("to")) {
      if (value->operand(0)->tensor_type().dtype != DType::kU8) return {};
      std::reverse(chain.begin(), chain.end());
      return chain;
    }
    if (!value->op()->elementwise || HasParameters(*value)) return {};
  }
  return {};
}

}  // namespace fuselage::match

#include "passes/quant_lift/mutations.h"

#include "passes/normalize/in_place.h"

namespace fuselage::quant_lift {

void Mutations::Visit(const ir::Node& node) {
  if (!node.is_call() || node.num_operands() == 0 || node.operand(0) == nullptr) return;
  const bool in_place = node.kind() != ir::NodeKind::kCallModule && normalize::IsInPlace(node.target());
  const bool shares = in_place || node.op()->view || node.IsOp("slice") || node.IsOp("split") || node.IsOp("getitem");
  if (!shares) return;
  const ir::Node* memory = MemoryOf(*node.operand(0));
  memory_[&node] = memory;
  if (in_place) last_change_[memory] = &node;
}

const ir::Node* Mutations::LastChangeOrNull(const ir::Node& value) const {
  if (last_change_.empty()) return nullptr;
  const auto it = last_change_.find(MemoryOf(value));
  return it == last_change_.end() ? nullptr : it->second;
}

const ir::Node* Mutations::MemoryOf(const ir::Node& value) const {
  const auto it = memory_.find(&value);
  return it == memory_.end() ? &value : it->second;
}

}  // namespace fuselage::quant_lift

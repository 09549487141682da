#include "passes/quant_lift/mutations.h"

#include "ir/match/in_place.h"

namespace fuselage::quant_lift {

void Mutations::Visit(const ir::Node& node) {
  if (!match::MayShareMemory(node)) return;
  const ir::Node* memory = MemoryOf(*node.operand(0));
  memory_[&node] = memory;
  const bool in_place = node.kind() != ir::NodeKind::kCallModule && match::IsInPlace(node.target());
  if (in_place) last_change_[memory] = {++num_changes_, &node};
}

const ir::Node* Mutations::LastChangeOrNull(const ir::Node& reader) const {
  Change last;
  for (int i = 0; i < reader.num_operands() && !last_change_.empty(); ++i) {
    if (reader.operand(i) == nullptr) continue;
    const auto it = last_change_.find(MemoryOf(*reader.operand(i)));
    if (it != last_change_.end() && it->second.number > last.number) last = it->second;
  }
  return last.in_place;
}

const ir::Node* Mutations::MemoryOf(const ir::Node& value) const {
  const auto it = memory_.find(&value);
  return it == memory_.end() ? &value : it->second;
}

}  // namespace fuselage::quant_lift

#include "ir/match/batch.h"

#include <algorithm>
#include <vector>

#include "ir/batch.h"

namespace fuselage::match {

void BatchFollowers::Visit(const ir::Node& node) {
  const auto batch = node.attributes().find(ir::kBatchAttribute);
  const std::vector<ir::Node*> operands = node.operands();
  if (node.kind() == ir::NodeKind::kPlaceholder || (batch != node.attributes().end() && batch->second.as_int() > 0) ||
      std::any_of(operands.begin(), operands.end(),
                  [this](const ir::Node* operand) { return nodes_.contains(operand); })) {
    nodes_.insert(&node);
  } else {
    nodes_.erase(&node);  // Of one that was erased, whose place it has.
  }
}

}  // namespace fuselage::match

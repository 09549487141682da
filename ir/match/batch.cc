#include "ir/match/batch.h"

#include <vector>

#include "ir/base/hash_map.h"
#include "ir/batch.h"

namespace fuselage::match {

bool FollowsBatch(const ir::Node& node) {
  std::vector<const ir::Node*> waiting = {&node};
  HashSet<const ir::Node*> seen;
  while (!waiting.empty()) {
    const ir::Node* next = waiting.back();
    waiting.pop_back();
    if (next == nullptr || !seen.insert(next).second) continue;
    if (next->kind() == ir::NodeKind::kPlaceholder) return true;
    const auto batch = next->attributes().find(ir::kBatchAttribute);
    if (batch != next->attributes().end() && batch->second.as_int() > 0) return true;
    for (const ir::Node* operand : next->operands()) waiting.push_back(operand);
  }
  return false;
}

}  // namespace fuselage::match

#include "passes/quantize/maxima.h"

#include <algorithm>

#include "passes/quantize/select.h"

namespace fuselage::quantize {

using ir::Node;

Maxima::Maxima(const ir::Graph& graph) {
  const std::vector<Node*> nodes = graph.Snapshot();
  std::for_each(nodes.rbegin(), nodes.rend(), [&](const Node* node) {  // Readers first.
    const std::vector<Node*> users = node->users();
    const bool only = std::all_of(users.begin(), users.end(), [&](const Node* user) {
      return (IsView(user) && only_read_by_maxima_.contains(user)) ||
             (user->op() != nullptr && user->op()->takes_maxima);
    });
    if (only && !users.empty() && node->kind() != ir::NodeKind::kGetAttr) only_read_by_maxima_.insert(node);
  });
}

void Maxima::AddWhatMatters(Node* value, std::vector<Node*>& values) const {
  std::vector<Node*> open = {value};
  while (!open.empty()) {
    Node* const next = open.back();
    open.pop_back();
    if (only_read_by_maxima_.contains(next)) {
      const std::vector<Node*> users = next->users();
      open.insert(open.end(), users.begin(), users.end());
    } else {
      values.push_back(next);
    }
  }
}

}  // namespace fuselage::quantize

#include "passes/quantize/exact.h"

namespace fuselage::quantize {

HashSet<const ir::Node*> ExactValues(const ir::Graph& graph) {
  HashSet<const ir::Node*> exact;
  for (const ir::Node* user = graph.last(); user != nullptr; user = user->previous()) {
    if (user->op() == nullptr) continue;
    const bool hands_on = exact.contains(user) && graph.CostOf(*user).macs == 0;
    for (const ir::Argument& argument : user->arguments()) {
      if (argument.value != nullptr && (hands_on || argument.spec->exact)) exact.insert(argument.value);
    }
  }
  return exact;
}

}  // namespace fuselage::quantize

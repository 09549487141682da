#include "double_relu/double_relu.h"

#include "absl/strings/str_cat.h"
#include "double_relu/double_relu.pb.h"

namespace double_relu {

using fuselage::ir::Node;

absl::StatusOr<bool> DoubleRelu::RunImpl(fuselage::ir::Graph& graph, fuselage::passes::Remarks& remarks) const {
  bool changed = false;
  for (Node* node : graph.Snapshot()) {
    if (!node->IsOp("relu") || !node->operand(0)->IsOp("relu")) continue;
    Node* first = node->operand(0);
    remarks.Applied(*node, absl::StrCat("the same as %", first->name()));
    first->AddSources(first->SourcesOrSelf());
    first->AddSources(node->SourcesOrSelf());
    node->ReplaceAllUsesWith(first);
    graph.Erase(node);
    changed = true;
  }
  return changed;
}

void Register(fuselage::passes::PassRegistry& registry) {
  registry.Register<DoubleReluOptions>([](const DoubleReluOptions&, const fuselage::passes::PassEnvironment&) {
    return std::make_unique<DoubleRelu>();
  });
}

}  // namespace double_relu

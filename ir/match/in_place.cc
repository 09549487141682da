#include "ir/match/in_place.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fuselage::match {

using ir::Node;
using ir::NodeKind;

bool MayShareMemory(const Node& node) {
  if (!node.is_call() || node.num_operands() == 0 || node.operand(0) == nullptr) return false;
  if (node.op()->view != ir::View::kNone) return true;
  if (node.kind() != NodeKind::kCallModule && IsInPlace(node.target())) return true;
  return node.IsOp("split") || node.IsOp("getitem") || node.IsOp("dropout");
}

bool IsInPlace(absl::string_view target) {
  for (absl::string_view spelling : {"operator.iadd", "operator.isub", "operator.imul", "operator.itruediv"}) {
    if (target == spelling) return true;
  }
  return absl::EndsWith(target, "_") && !absl::EndsWith(target, "__");
}

std::string WhyMutationIsSeen(const Node& node, const std::function<bool(const Node&)>& is_later) {
  constexpr int kMostUses = 1000;
  const Node* root = node.operand(0);
  int steps = 0;
  while (MayShareMemory(*root)) {
    if (++steps > kMostUses) return "it has too many aliases";
    root = root->operand(0);
  }
  if (root->kind() == NodeKind::kGetAttr) return absl::StrCat("it changes the parameter @", root->target());

  std::vector<const Node*> aliases = {root};
  int uses = 0;
  while (!aliases.empty()) {
    const Node* alias = aliases.back();
    aliases.pop_back();
    for (const ir::Use& use : alias->uses()) {
      if (use.user == &node) continue;
      if (++uses > kMostUses) return "it has too many aliases";
      if (use.user->kind() == NodeKind::kOutput) return absl::StrCat("it changes the graph output %", alias->name());
      if (is_later(*use.user)) {
        return absl::StrCat("it changes %", alias->name(), ", which %", use.user->name(), " reads later");
      }
      if (use.index == 0 && MayShareMemory(*use.user)) aliases.push_back(use.user);
    }
  }
  return "";
}

}  // namespace fuselage::match

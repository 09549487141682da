#include "ir/match/match.h"

#include <algorithm>

namespace fuselage::match {

using ir::Node;

Pattern Pattern::And(Condition condition) const {
  Pattern extended = *this;
  extended.conditions_.push_back(std::move(condition));
  return extended;
}

Pattern Pattern::With(int i, Pattern operand) const {
  return And([i, operand = std::move(operand)](Node* node, Captures* captures) {
    return i < node->num_operands() && operand.Matches(node->operand(i), captures);
  });
}

Pattern Pattern::WithEitherOrder(Pattern a, Pattern b) const {
  return And([a = std::move(a), b = std::move(b)](Node* node, Captures* captures) {
    if (node->num_operands() < 2) return false;
    const size_t mark = captures->size();
    const auto matches = [&](int first, int second) {
      captures->resize(mark);
      return a.Matches(node->operand(first), captures) && b.Matches(node->operand(second), captures);
    };
    return matches(0, 1) || matches(1, 0);
  });
}

Pattern Pattern::OneUse() const {
  return And([](Node* node, Captures*) { return node->has_one_use(); });
}

Pattern Pattern::Where(std::function<bool(const Node&)> condition) const {
  return And([condition = std::move(condition)](Node* node, Captures*) { return condition(*node); });
}

Pattern Pattern::Attr(absl::string_view name, Attribute value) const {
  return And([name = std::string(name), value = std::move(value)](Node* node, Captures*) {
    return node->is_call() && node->op()->FindAttributeOrNull(name) != nullptr && node->attribute(name) == value;
  });
}

Pattern Pattern::Capture(Node** target) const {
  return And([target](Node* node, Captures* captures) {
    captures->emplace_back(target, node);
    return true;
  });
}

bool Pattern::Matches(Node* node, Captures* captures) const {
  if (node == nullptr) return false;
  return std::all_of(conditions_.begin(), conditions_.end(),
                     [&](const Condition& condition) { return condition(node, captures); });
}

bool Pattern::Match(Node* node) const {
  Captures captures;
  if (!Matches(node, &captures)) return false;
  for (const auto& [target, matched] : captures) *target = matched;
  return true;
}

Pattern Any() { return Pattern(); }

Pattern Kind(ir::NodeKind kind) {
  return Pattern().Where([kind](const Node& node) { return node.kind() == kind; });
}

Pattern Op(absl::string_view name) { return OneOf({std::string(name)}); }

Pattern OneOf(std::vector<std::string> names) {
  return Pattern().Where([names = std::move(names)](const Node& node) {
    return node.op() != nullptr && std::find(names.begin(), names.end(), node.op()->name) != names.end();
  });
}

}  // namespace fuselage::match

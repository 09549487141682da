#include "passes/rewrite/matcher.h"

#include <utility>

namespace fuselage::rewrite {
namespace {

using ir::Node;

bool KindFits(Pattern::Kind kind, const Node& node) {
  switch (kind) {
    case Pattern::Kind::kPlaceholder: return true;
    case Pattern::Kind::kConstant: return node.kind() == ir::NodeKind::kGetAttr;
    case Pattern::Kind::kFunction:
      return node.kind() == ir::NodeKind::kCallFunction || node.kind() == ir::NodeKind::kCallMethod;
    case Pattern::Kind::kModule: return node.kind() == ir::NodeKind::kCallModule;
    case Pattern::Kind::kAnyCall: return node.is_call();
  }
  return false;
}

bool Commutes(const Node& node) {
  return node.num_operands() == 2 &&
         (node.IsOp("mul") || (node.IsOp("add") && node.attribute("alpha").as_float() == 1));
}

class Search {
 public:
  explicit Search(const Pattern& pattern) : pattern_(pattern) {}

  std::optional<Match> Run(Node* result) {
    State state;
    state.match.nodes.assign(pattern_.nodes.size(), nullptr);
    state.pending = {{pattern_.result, result}};
    if (!Solve(state)) return std::nullopt;
    return std::move(state.match);
  }

 private:
  struct State {
    Match match;
    std::vector<std::pair<int, Node*>> pending;  // Pairs that must match as well.
  };

  // True, with `state` solved: all pending pairs match.
  bool Solve(State& state) const {
    while (!state.pending.empty()) {
      const auto [index, node] = state.pending.back();
      state.pending.pop_back();
      if (index == Pattern::kAbsent || node == nullptr) {
        if (index == Pattern::kAbsent && node == nullptr) continue;
        return false;
      }
      Node*& bound = state.match.nodes[index];
      if (bound == node) continue;
      if (bound != nullptr) return false;
      const Pattern::Node& wanted = pattern_.nodes[index];
      if (!KindFits(wanted.kind, *node) || (wanted.op != nullptr && IsTaken(*node, state.match))) return false;
      bound = node;
      if (wanted.op == nullptr) continue;
      if (node->op() != wanted.op || !TakeValues(wanted, *node, state.match)) return false;
      if (node->num_operands() != static_cast<int>(wanted.operands.size())) return false;
      if (Commutes(*node)) {
        State swapped = state;
        Push(wanted, *node, /*swap=*/false, state);
        State stated = state;
        if (Solve(stated)) {
          state = std::move(stated);
          return true;
        }
        Push(wanted, *node, /*swap=*/true, swapped);
        state = std::move(swapped);
      } else {
        Push(wanted, *node, /*swap=*/false, state);
      }
    }
    return true;
  }

  // Two calls of the pattern are two calls of the graph.
  bool IsTaken(const Node& node, const Match& match) const {
    for (size_t i = 0; i < match.nodes.size(); ++i) {
      if (match.nodes[i] == &node && pattern_.nodes[i].op != nullptr) return true;
    }
    return false;
  }

  static void Push(const Pattern::Node& wanted, const Node& node, bool swap, State& state) {
    const int n = node.num_operands();
    for (int i = n - 1; i >= 0; --i) state.pending.emplace_back(wanted.operands[i], node.operand(swap ? n - 1 - i : i));
  }

  // Attributes and parameters, by literal or capture.
  static bool TakeValues(const Pattern::Node& wanted, const Node& node, Match& match) {
    for (const ir::AttributeSpec& spec : node.op()->attributes) {
      const Attribute& found = node.attribute(spec.name);
      const auto it = wanted.values.find(spec.name);
      if (it == wanted.values.end()) {
        if (!spec.default_value || found != *spec.default_value) return false;
      } else if (it->second.literal) {
        if (found != *it->second.literal) return false;
      } else if (!Capture(it->second.capture, found, match)) {
        return false;
      }
    }
    for (const ir::OperandSpec& spec : node.op()->operands) {
      if (!spec.parameter || node.module() == nullptr) continue;
      const auto found = node.module()->parameters.find(spec.name);
      const auto it = wanted.values.find(spec.name);
      const bool present = found != node.module()->parameters.end();
      if (it == wanted.values.end() ? present : !present && !it->second.optional) return false;
      if (it != wanted.values.end() && present && !Capture(it->second.capture, Attribute(found->second), match)) {
        return false;
      }
    }
    return true;
  }

  static bool Capture(const std::string& name, const Attribute& value, Match& match) {
    return match.captures.emplace(name, value).first->second == value;
  }

  const Pattern& pattern_;
};

}  // namespace

std::optional<Match> FindMatch(const Pattern& pattern, Node* result) { return Search(pattern).Run(result); }

}  // namespace fuselage::rewrite

#include "passes/rewrite/matcher.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "passes/rewrite/product.h"

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
    case Pattern::Kind::kAnyCall:
    case Pattern::Kind::kProduct: return node.is_call();
  }
  return false;
}

bool Commutes(const Node& node) {
  if (node.num_operands() != 2) return false;
  if (node.IsOp("add")) return node.attribute("alpha").as_float() == 1;
  return node.IsOp("mul") || node.IsOp("maximum") || node.IsOp("minimum");
}

bool IsSame(const Attribute& a, const Attribute& b) {
  if (a.kind() != AttributeKind::kFloat || b.kind() != AttributeKind::kFloat) return a == b;
  return IsClose(a.as_float(), b.as_float());
}

class Search {
 public:
  explicit Search(const Pattern& pattern) : pattern_(pattern) {}

  std::optional<Match> Run(Node* result) {
    State state;
    state.match.nodes.assign(pattern_.nodes.size(), nullptr);
    state.pending = {{pattern_.result, result, false}};
    if (!Solve(state)) return std::nullopt;
    for (size_t i = 0; i < pattern_.nodes.size(); ++i) {  // An input is not part of what goes.
      if (!pattern_.nodes[i].is_call() && absl::c_linear_search(state.match.calls, state.match.nodes[i])) {
        return std::nullopt;
      }
    }
    return std::move(state.match);
  }

 private:
  struct State {
    Match match;
    struct Pair {
      int index;
      Node* node;
      bool surely = false;  // Not passed over.
    };
    std::vector<Pair> pending;  // That must match as well.
  };

  // True, with `state` solved: all pending pairs match.
  bool Solve(State& state) const {
    while (!state.pending.empty()) {
      const auto [index, node, surely] = state.pending.back();
      state.pending.pop_back();
      if (index == Pattern::kAbsent || node == nullptr) {
        if (index == Pattern::kAbsent && node == nullptr) continue;
        return false;
      }
      Node*& bound = state.match.nodes[index];
      if (bound == node) continue;
      if (bound != nullptr) return false;
      const Pattern::Node& wanted = pattern_.nodes[index];
      if (wanted.maybe && !surely) {
        State taken = state;
        taken.pending.push_back({index, node, true});
        if (node->has_one_use() && Solve(taken)) {
          state = std::move(taken);
          return true;
        }
        bound = node;
        state.pending.push_back({PassedOverFor(wanted), node});
        continue;
      }
      if (!KindFits(wanted.kind, *node)) return false;
      bound = node;
      if (wanted.kind == Pattern::Kind::kProduct) return SolveProduct(wanted, node, state);
      if (!wanted.is_call()) {
        if (wanted.number && !TakeNumber(*wanted.number, NumberOf(*node), state.match)) return false;
        continue;
      }
      if (!Cover(node, state.match)) return false;
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

  // `node` computes the wanted product, in some order of the factors, and all that is pending matches.
  bool SolveProduct(const Pattern::Node& wanted, Node* node, State& state) const {
    const Product product = ProductOf(node);
    if (product.calls.empty() || product.factors.size() != wanted.operands.size()) return false;
    if (!TakeNumber(*wanted.number, product.coefficient, state.match)) return false;
    for (Node* call : product.calls) {
      if (!Cover(call, state.match)) return false;
    }
    std::vector<int> order(product.factors.size());  // The wanted factor that each of the found ones is.
    std::iota(order.begin(), order.end(), 0);
    do {
      const auto fits = [&](int i) { return IsClose(product.factors[i].second, wanted.exponents[order[i]]); };
      std::vector<int> found(order.size());
      std::iota(found.begin(), found.end(), 0);
      if (!absl::c_all_of(found, fits)) continue;
      State attempt = state;
      for (int i : found) attempt.pending.push_back({wanted.operands[order[i]], product.factors[i].first});
      if (!Solve(attempt)) continue;
      state = std::move(attempt);
      return true;
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }

  // Two calls of the pattern are two calls of the graph.
  static bool Cover(Node* node, Match& match) {
    if (absl::c_linear_search(match.calls, node)) return false;
    match.calls.push_back(node);
    return true;
  }

  static bool TakeNumber(const Pattern::Value& wanted, std::optional<double> found, Match& match) {
    if (!found) return false;
    if (wanted.literal) return IsClose(*found, wanted.literal->as_float());
    return Capture(wanted, Attribute(*found), match);
  }

  static void Push(const Pattern::Node& wanted, const Node& node, bool swap, State& state) {
    const int n = node.num_operands();
    for (int i = n - 1; i >= 0; --i) state.pending.push_back({wanted.operands[i], node.operand(swap ? n - 1 - i : i)});
  }

  // What a node that is passed over stands for.
  int PassedOverFor(const Pattern::Node& wanted) const {
    const auto is_call = [&](int i) { return i != Pattern::kAbsent && pattern_.nodes[i].is_call(); };
    const auto it = absl::c_find_if(wanted.operands, is_call);
    return it == wanted.operands.end() ? wanted.operands[0] : *it;
  }

  // Attributes and parameters, by literal or capture.
  static bool TakeValues(const Pattern::Node& wanted, const Node& node, Match& match) {
    for (const ir::AttributeSpec& spec : node.op()->attributes) {
      const Attribute& found = node.attribute(spec.name);
      const auto it = wanted.values.find(spec.name);
      if (it == wanted.values.end()) {
        if (!spec.default_value || !IsSame(found, *spec.default_value)) return false;
      } else if (it->second.literal) {
        if (!IsSame(found, *it->second.literal)) return false;
      } else if (!Capture(it->second, found, match)) {
        return false;
      }
    }
    for (const ir::OperandSpec& spec : node.op()->operands) {
      if (!spec.parameter || node.module() == nullptr) continue;
      const auto found = node.module()->parameters.find(spec.name);
      const auto it = wanted.values.find(spec.name);
      const bool present = found != node.module()->parameters.end();
      if (it == wanted.values.end() ? present : !present && !it->second.optional) return false;
      if (it != wanted.values.end() && present && !Capture(it->second, Attribute(found->second), match)) {
        return false;
      }
    }
    return true;
  }

  static bool Capture(const Pattern::Value& wanted, const Attribute& value, Match& match) {
    if (value.kind() == AttributeKind::kFloat && !(value.as_float() >= wanted.min && value.as_float() <= wanted.max)) {
      return false;
    }
    return IsSame(match.captures.emplace(wanted.capture, value).first->second, value);
  }

  const Pattern& pattern_;
};

}  // namespace

std::optional<Match> FindMatch(const Pattern& pattern, Node* result) {
  const Pattern::Node& wanted = pattern.nodes[pattern.result];
  if (wanted.op != nullptr && result->op() != wanted.op) return std::nullopt;
  return Search(pattern).Run(result);
}

}  // namespace fuselage::rewrite

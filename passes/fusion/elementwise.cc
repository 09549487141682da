#include "passes/fusion/elementwise.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/elementwise.h"
#include "ir/base/hash_map.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"

namespace fuselage::fusion {
namespace {

using ir::Node;
using passes::Remarks;

constexpr size_t kMostSteps = 32;  // Their blocks stay within a core's caches.

ElementwiseStep StepOf(const Node& node) { return {node.op()->name, {}, node.attributes()}; }

bool IsStep(const Node& node) {
  if (!node.is_call() || !node.op()->elementwise || !IsElementwiseStep(node.op()->name) || !match::IsF32(node))
    return false;
  for (const Node* operand : node.operands()) {
    if (operand == nullptr || !match::IsF32(*operand)) return false;
  }
  ElementwiseStep step = StepOf(node);
  step.operands.assign(node.num_operands(), 0);
  return CompileElementwise({step}).ok();
}

class Chains {
 public:
  Chains(ir::Graph& graph, Remarks& remarks) : graph_(graph), remarks_(remarks) {}

  absl::StatusOr<bool> Run() {
    std::vector<Node*> steps;
    for (Node* node = graph_.first(); node != nullptr; node = node->next()) {
      if (!IsStep(*node)) continue;
      position_[node] = static_cast<int64_t>(steps.size());
      steps.push_back(node);
      steps_.insert(node);
    }
    bool changed = false;
    for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
      if (!steps_.contains(*it)) continue;  // Already in a chain.
      std::vector<Node*> chain = ChainBelow(*it);
      if (chain.size() < 2) continue;
      RETURN_IF_ERROR(Fuse(std::move(chain)));
      changed = true;
    }
    return changed;
  }

 private:
  // `root` and what joins it, which are no longer in steps_.
  std::vector<Node*> ChainBelow(Node* root) {
    std::vector<Node*> chain;
    std::vector<Node*> joining = {root};
    HashMap<Node*, int> reads;  // How often the chain reads each operand.
    while (!joining.empty()) {
      Node* node = joining.back();
      joining.pop_back();
      steps_.erase(node);
      chain.push_back(node);
      for (Node* operand : node->operands()) {
        if (++reads[operand] < operand->num_uses() || !steps_.contains(operand)) continue;
        if (chain.size() + joining.size() < kMostSteps && operand->type() == root->type()) joining.push_back(operand);
      }
    }
    for (const auto& [operand, count] : reads) {
      if (steps_.contains(operand)) missed_.push_back({operand, root, count});
    }
    std::sort(missed_.begin(), missed_.end(),
              [this](const Miss& a, const Miss& b) { return position_.at(a.node) < position_.at(b.node); });
    for (const Miss& miss : missed_) remarks_.Missed(*miss.node, WhyNot(miss));
    missed_.clear();
    return chain;
  }

  struct Miss {
    const Node *node, *root;
    int reads;
  };
  static std::string WhyNot(const Miss& miss) {
    const std::string into = absl::StrCat("not fused into %", miss.root->name(), ": ");
    if (miss.reads < miss.node->num_uses()) {
      for (const Node* user : miss.node->users()) {
        if (user->kind() == ir::NodeKind::kOutput) return absl::StrCat(into, "a graph output");
      }
      return absl::StrCat(into, "also read outside the chain");
    }
    if (miss.node->type() != miss.root->type()) {
      return absl::StrCat(into, "it is ", ToString(miss.node->tensor_type().shape),
                          ", which would be computed again for ", ToString(miss.root->tensor_type().shape));
    }
    return absl::StrCat(into, "the chain has ", kMostSteps, " steps");
  }

  absl::Status Fuse(std::vector<Node*> chain) {
    std::sort(chain.begin(), chain.end(),
              [this](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
    const HashSet<const Node*> members(chain.begin(), chain.end());
    std::vector<Node*> operands;
    HashMap<const Node*, int> values;
    for (const Node* node : chain) {
      for (Node* operand : node->operands()) {
        if (members.contains(operand) || !values.emplace(operand, static_cast<int>(operands.size())).second) continue;
        operands.push_back(operand);
      }
    }
    std::vector<std::string> steps, sources;
    for (const Node* node : chain) {
      ElementwiseStep step = StepOf(*node);
      for (const Node* operand : node->operands()) step.operands.push_back(values.at(operand));
      values[node] = static_cast<int>(operands.size() + steps.size());
      steps.push_back(ToString(step));
      for (std::string& source : node->SourcesOrSelf()) sources.push_back(std::move(source));
    }
    Node* root = chain.back();
    std::string names;
    for (size_t i = 0; i + 1 < chain.size(); ++i) absl::StrAppend(&names, i == 0 ? "%" : ", %", chain[i]->name());
    remarks_.Applied(*root, absl::StrCat("one pass over memory for it and ", names));
    ASSIGN_OR_RETURN(Node * fused, graph_.AddFunction(root->name(), "fused_elementwise", std::move(operands),
                                                      {{"steps", Attribute(std::move(steps))}}, root));
    fused->AddSources(sources);
    const int64_t position = position_.at(root);  // Not a reference into a table that grows.
    position_[fused] = position;
    for (const Node* node : chain) position_.erase(node);
    graph_.Replace(root, fused);
    for (size_t i = chain.size() - 1; i-- > 0;) graph_.Erase(chain[i]);
    return absl::OkStatus();
  }

  ir::Graph& graph_;
  Remarks& remarks_;
  HashMap<const Node*, int64_t> position_;  // Where each step stands.
  HashSet<const Node*> steps_;              // Not in a chain yet.
  std::vector<Miss> missed_;
};

}  // namespace

absl::StatusOr<bool> FuseElementwise(ir::Graph& graph, Remarks& remarks) { return Chains(graph, remarks).Run(); }

}  // namespace fuselage::fusion

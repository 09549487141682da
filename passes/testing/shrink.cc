#include "passes/testing/shrink.h"

#include <string>
#include <vector>

#include "passes/core/pass.h"

namespace fuselage::testing {
namespace {

using ir::Graph;
using ir::Node;

void RemoveUnused(Graph& graph) {
  passes::RemoveDeadNodes(graph);
  for (Node* node : graph.placeholders()) {
    if (node->num_uses() == 0) graph.Erase(node);
  }
}

class Shrinker {
 public:
  Shrinker(const Graph& graph, const std::function<bool(const Graph&)>& fails, int most_checks)
      : graph_(graph.Clone()), fails_(fails), checks_left_(most_checks) {}

  std::unique_ptr<Graph> Run() {
    Try([](Graph&) { return true; });
    for (bool smaller = true; smaller && checks_left_ > 0;) {
      smaller = DropOutputs();
      smaller |= RaiseOutputs();
      smaller |= DropCalls();
    }
    return std::move(graph_);
  }

 private:
  // Keeps what `edit` makes of a copy, if that still fails. An edit returns false where it does not apply.
  template <typename Edit>
  bool Try(Edit edit) {
    if (checks_left_ <= 0) return false;
    std::unique_ptr<Graph> copy = graph_->Clone();
    if (!edit(*copy)) return false;
    RemoveUnused(*copy);
    --checks_left_;
    // A type may have changed its meaning below the edit (axes of codes): then the edit does not apply.
    if (copy->first() == copy->output() || !copy->Verify().ok() || !fails_(*copy)) return false;
    graph_ = std::move(copy);
    return true;
  }

  bool DropOutputs() {
    bool smaller = false;
    for (int i = graph_->output()->num_operands() - 1; i >= 0 && graph_->output()->num_operands() > 1; --i) {
      smaller |= Try([i](Graph& graph) {
        std::vector<Node*> kept = graph.output()->operands();
        kept.erase(kept.begin() + i);
        graph.Erase(graph.output());
        return graph.AddOutput(std::move(kept)).ok();
      });
    }
    return smaller;
  }

  bool RaiseOutputs() {
    bool smaller = false;
    for (int i = 0; i < graph_->output()->num_operands(); ++i) {
      for (int k = 0; k < graph_->output()->operand(i)->num_operands(); ++k) {
        const bool raised = Try([i, k](Graph& graph) {
          Node* value = graph.output()->operand(i)->operand(k);
          while (value != nullptr && value->type().is_tuple()) value = value->operand(0);
          if (value == nullptr || !value->type().is_tensor()) return false;
          graph.output()->set_operand(i, value);
          return true;
        });
        if (raised) k = -1;  // On from the new output.
        smaller |= raised;
      }
    }
    return smaller;
  }

  // By name: each accepted edit makes a new graph.
  bool DropCalls() {
    std::vector<std::string> names;
    for (const Node* node = graph_->last(); node != nullptr; node = node->previous()) {
      if (node->is_call()) names.push_back(node->name());
    }
    bool smaller = false;
    for (const std::string& name : names) {
      const Node* node = graph_->FindNodeOrNull(name);
      if (node == nullptr) continue;
      bool gone = false;
      for (int i = 0; i < node->num_operands() && !gone; ++i) {
        if (node->operand(i) == nullptr || node->operand(i)->type() != node->type()) continue;
        gone = Try([&](Graph& graph) {
          Node* copy = graph.FindNodeOrNull(name);
          copy->ReplaceAllUsesWith(copy->operand(i));
          return true;
        });
      }
      if (!gone && node->type().is_tensor()) {
        gone = Try([&](Graph& graph) {
          Node* copy = graph.FindNodeOrNull(name);
          const absl::StatusOr<Node*> input = graph.AddPlaceholder("in", copy->tensor_type(), graph.first());
          if (input.ok()) copy->ReplaceAllUsesWith(*input);
          return input.ok();
        });
      }
      smaller |= gone;
    }
    return smaller;
  }

  std::unique_ptr<Graph> graph_;
  const std::function<bool(const Graph&)>& fails_;
  int checks_left_;
};

}  // namespace

std::unique_ptr<Graph> Shrink(const Graph& graph, const std::function<bool(const Graph&)>& fails, int most_checks) {
  return Shrinker(graph, fails, most_checks).Run();
}

}  // namespace fuselage::testing

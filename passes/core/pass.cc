#include "passes/core/pass.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace fuselage::passes {

absl::StatusOr<bool> Pass::Run(ir::Graph& graph, Remarks& remarks) const {
  remarks.set_pass(name());
  // A dead reader would make a value look shared, and a later run, without it, find more.
  const bool swept = RemoveDeadNodes(graph) > 0;
  absl::StatusOr<bool> changed = RunImpl(graph, remarks);
  if (!changed.ok()) return Annotate(changed.status(), name());
  if (*changed) RemoveDeadNodes(graph);
  RETURN_IF_ERROR(Annotate(Ensures(graph), absl::StrCat(name(), " did not ensure what it states")));
  return swept || *changed;
}

absl::StatusOr<int> Runner::ForFirstSamples(
    int most, const ir::Graph& graph, absl::Span<const ir::Node* const> nodes,
    const std::function<absl::Status(int sample, absl::Span<const Tensor* const> values)>& visit) {
  int visited = 0;
  bool ended = false;
  const absl::Status status =
      ForEachSample(graph, nodes, [&](int sample, absl::Span<const Tensor* const> values) -> absl::Status {
        RETURN_IF_ERROR(visit(sample, values));
        ended = ++visited == most;
        return ended ? absl::CancelledError("these were enough") : absl::OkStatus();
      });
  if (!ended) RETURN_IF_ERROR(status);
  return visited;
}

int64_t RemoveDeadNodes(ir::Graph& graph) {
  int64_t removed = 0;
  // Backwards: when a node goes, its operands' uses are already counted down before they are visited.
  for (ir::Node* node = graph.last(); node != nullptr && graph.num_dead_nodes() > 0;) {
    ir::Node* previous = node->previous();
    const bool removable = node->is_call() || node->kind() == ir::NodeKind::kGetAttr;
    if (removable && node->num_uses() == 0) {
      graph.Erase(node);
      ++removed;
    }
    node = previous;
  }
  removed += graph.EraseUncalledModules();
  return removed + graph.EraseUnusedParameters();
}

}  // namespace fuselage::passes

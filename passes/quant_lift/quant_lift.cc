#include "passes/quant_lift/quant_lift.h"

#include <memory>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "passes/quant_lift/liftable.h"
#include "passes/quant_lift/lifter.h"
#include "passes/quant_lift/mutations.h"

namespace fuselage::quant_lift {

using ir::Node;

absl::StatusOr<bool> QuantLift::RunImpl(ir::Graph& graph, passes::Remarks& remarks) const {
  for (bool changed = false;; changed = true) {
    Lifter round(graph, remarks);
    ASSIGN_OR_RETURN(const bool changed_again, round.Run());
    if (!changed_again) {
      round.ReportMissed();
      return changed;
    }
    passes::RemoveDeadNodes(graph);
  }
}

absl::Status QuantLift::Ensures(const ir::Graph& graph) const {
  Keys keys;
  Mutations mutations;
  HashMap<std::tuple<const Node*, int, const Node*>, const Node*> seen;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (IsLiftable(*node)) {
      const Node* value = node->operand(0);
      const auto [it, added] =
          seen.emplace(std::make_tuple(value, keys.Of(OwnQuantizing(*node)), mutations.LastChangeOrNull(*node)), node);
      if (!added) {
        return absl::InternalError(
            absl::StrCat("%", node->name(), " quantizes %", value->name(), " as %", it->second->name(), " does"));
      }
    }
    mutations.Visit(*node);
  }
  return absl::OkStatus();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<QuantLiftOptions>(
      [](const QuantLiftOptions&, const passes::PassEnvironment&) { return std::make_unique<QuantLift>(); });
}

}  // namespace fuselage::quant_lift

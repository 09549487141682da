#include "passes/rewrite/rewrite.h"

#include <memory>
#include <optional>

#include "ir/base/hash_map.h"
#include "passes/rewrite/apply.h"
#include "passes/rewrite/matcher.h"
#include "passes/rewrite/rule.h"

namespace fuselage::rewrite {

using ir::Node;

absl::StatusOr<bool> Rewrite::RunImpl(ir::Graph& graph, passes::Remarks& remarks) const {
  bool changed = false;
  for (const RewriteOptions::Rule& options : options_.rules()) {
    const absl::StatusOr<Rule> rule = ParseRule(options, graph.ops());
    if (!rule.ok()) return UsageError(rule.status().message());
    HashSet<const Node*> gone;
    for (Node* node : graph.Snapshot()) {
      if (gone.contains(node)) continue;
      const std::optional<Match> match = FindMatch(rule->pattern, node);
      if (!match) continue;
      ASSIGN_OR_RETURN(const std::optional<Replacement> replacement, Apply(*rule, *match, graph, remarks));
      if (!replacement) continue;
      for (const Node* erased : replacement->erased) gone.insert(erased);
      changed = true;
    }
  }
  return changed;
}

void Register(passes::PassRegistry& registry) {
  registry.Register<RewriteOptions>(
      [](const RewriteOptions& options, const passes::PassEnvironment&) { return std::make_unique<Rewrite>(options); });
}

}  // namespace fuselage::rewrite

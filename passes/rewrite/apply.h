// Puts a rule's replacement in the place of a match.
#ifndef FUSELAGE_PASSES_REWRITE_APPLY_H_
#define FUSELAGE_PASSES_REWRITE_APPLY_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"
#include "passes/rewrite/matcher.h"
#include "passes/rewrite/rule.h"

namespace fuselage::rewrite {

struct Replacement {
  std::vector<ir::Node*> added;         // In the graph's order; none where it is one of the pattern's inputs.
  std::vector<const ir::Node*> erased;  // Not to be looked into.
};

// nullopt, and a remark that says why: a value inside the match is also read outside; the replacement's type is
// another; its op does not take its operands or attributes.
absl::StatusOr<std::optional<Replacement>> Apply(const Rule& rule, const Match& match, ir::Graph& graph,
                                                 passes::Remarks& remarks);

}  // namespace fuselage::rewrite

#endif  // FUSELAGE_PASSES_REWRITE_APPLY_H_

// Finds one occurrence of a pattern: subgraph isomorphism from a given result upwards.
#ifndef FUSELAGE_PASSES_REWRITE_MATCHER_H_
#define FUSELAGE_PASSES_REWRITE_MATCHER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/rewrite/rule.h"

namespace fuselage::rewrite {

struct Match {
  std::vector<ir::Node*> nodes;  // As the pattern's.
  std::vector<ir::Node*> calls;  // All that the pattern's calls and products stand for, the result included.
  // What the captures took; one that took nothing is not there. A parameter is its name, as a string.
  std::map<std::string, Attribute> captures;
};

// `result` as the pattern's result. Operands of add (alpha 1), mul, maximum and minimum match in either order, the
// stated one first, and the factors of a product in any. The cost is that of the pattern, times the number of these
// orders, whatever the size of the graph.
std::optional<Match> FindMatch(const Pattern& pattern, ir::Node* result);

}  // namespace fuselage::rewrite

#endif  // FUSELAGE_PASSES_REWRITE_MATCHER_H_

// What depends on a constant and on an index alone is a row of a table.
//   linear(one_hot(i))                        =>  index_select(rows of its weight, i)
//   f(index_select(constant, i), constants)   =>  index_select(f(constant, constants), i)
// for an elementwise f, also of several lookups by one index, and a table that is no larger than what is looked up.
#ifndef FUSELAGE_PASSES_NORMALIZE_LOOKUP_H_
#define FUSELAGE_PASSES_NORMALIZE_LOOKUP_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::normalize {

// What gives what `node` does, put in front of it, the lookup last; empty where nothing does.
absl::StatusOr<std::vector<ir::Node*>> AsLookup(ir::Node& node, ir::Graph& graph);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_LOOKUP_H_

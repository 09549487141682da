// What depends on a constant and on an index alone is a row of a table.
//   linear(one_hot(i))                        =>  index_select(rows of its weight, i)
//   linear(to(eq(i[..., 1], [0, 1, 2, ...])))  =>  the same
//   f(index_select(constant, i), constants)   =>  index_select(f(constant, constants), i)
// for an elementwise f, also of several lookups by one index, and a table that is no larger than what is looked up.
#ifndef FUSELAGE_PASSES_NORMALIZE_LOOKUP_H_
#define FUSELAGE_PASSES_NORMALIZE_LOOKUP_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/normalize/new_nodes.h"

namespace fuselage::normalize {

// Adds what gives what `node` does, the lookup last; false where nothing does.
absl::StatusOr<bool> AsLookup(const ir::Node& node, NewNodes& nodes);

}  // namespace fuselage::normalize

#endif  // FUSELAGE_PASSES_NORMALIZE_LOOKUP_H_

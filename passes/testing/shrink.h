// Makes a failing graph small enough to read.
#ifndef FUSELAGE_PASSES_TESTING_SHRINK_H_
#define FUSELAGE_PASSES_TESTING_SHRINK_H_

#include <functional>
#include <memory>

#include "ir/graph.h"

namespace fuselage::testing {

// A graph for which `fails` still holds and for which no single step below makes it smaller, unless `most_checks` calls
// of `fails` were not enough:
//   an output goes; an output becomes an operand of the call that computes it; a call becomes one of its operands of
//   equal type; a call becomes a placeholder of its type; what nothing uses goes, placeholders included.
// `fails` must hold for `graph`; it must not change what it is given.
std::unique_ptr<ir::Graph> Shrink(const ir::Graph& graph, const std::function<bool(const ir::Graph&)>& fails,
                                  int most_checks = 2000);

}  // namespace fuselage::testing

#endif  // FUSELAGE_PASSES_TESTING_SHRINK_H_

// Graphs at the edge of what inference takes: operands of rank 0, dimensions of 0 and 1.
#ifndef FUSELAGE_IR_TESTING_DEGENERATE_GRAPHS_H_
#define FUSELAGE_IR_TESTING_DEGENERATE_GRAPHS_H_

#include <functional>
#include <memory>

#include "ir/graph.h"

namespace fuselage::testing {

// Calls `visit` with a graph of one call of `op` for each choice of operand shapes (rank 0 to 5, most dimensions 0 to
// 2) of floats (indices and conditions aside), of codes, of integers or of booleans, and each choice of small attributes
// that the op's inference takes. A parameter is a constant. The call's results are the outputs.
void ForEachDegenerateCall(const ir::OpRegistry& ops, const ir::OpSchema& op,
                           const std::function<void(std::unique_ptr<ir::Graph> graph)>& visit);

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_DEGENERATE_GRAPHS_H_

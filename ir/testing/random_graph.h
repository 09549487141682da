// Random graphs for properties that must hold on all graphs, such as "this pass keeps the outputs".
#ifndef FUSELAGE_IR_TESTING_RANDOM_GRAPH_H_
#define FUSELAGE_IR_TESTING_RANDOM_GRAPH_H_

#include <cstdint>
#include <memory>

#include "ir/graph.h"

namespace fuselage::testing {

struct RandomGraphOptions {
  int calls = 24;  // About as many calls.
  // Codes and integers may be made of what convolutions and other arithmetic compute, as in a real network. Where a
  // pass moves a value within its tolerance, a code may then flip; without, outputs stay as close as the pass says.
  bool round_arithmetic = false;
  bool quantized = true;  // Holds quantizes; without, it is what the pass quantize takes.
};

// A function of seed and options alone, whatever the machine. Tensors are tiny: the interpreter takes milliseconds.
//
// Holds every op of ir/ops in its spellings (function, method, module, aliases, in place), shared modules, tied
// weights, values with several users, residual blocks, linear chains, views above quantizes, quantized layers, integer
// arithmetic, equal calls, dead nodes, several placeholders and outputs. A new op gets a file of recipes/.
std::unique_ptr<ir::Graph> RandomGraph(uint64_t seed, const ir::OpRegistry& ops,
                                       const RandomGraphOptions& options = {});

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_RANDOM_GRAPH_H_

// The roofline model (Williams, Waterman and Patterson, "Roofline: an insightful visual performance model", CACM 2009):
// a call takes as long as its arithmetic at the machine's peak or its bytes at the memory's, whichever is longer.
#ifndef FUSELAGE_PASSES_CORE_ROOFLINE_H_
#define FUSELAGE_PASSES_CORE_ROOFLINE_H_

#include "ir/graph.h"
#include "passes/core/pass.h"

namespace fuselage::passes {

struct Work {
  double operations = 0;  // A multiply-accumulate is two.
  double bytes = 0;       // Operands, results and parameters, each once.
  int calls = 0;          // Calls of kernels; 0 for views, which cost nothing at run time.
  bool on_codes = false;  // The operations are those of int8 codes.
};

// The work of one node.
Work WorkOf(const ir::Node& node);

double PredictedSeconds(const Work& work, const MachinePeaks& peaks);
// The work of all calls of the graph, one after the other, on one thread.
double PredictedSeconds(const ir::Graph& graph, const MachinePeaks& peaks);
// Operations a byte; 0 where nothing moves.
double ArithmeticIntensity(const Work& work);

// One core of a server CPU with AVX-512, for callers that measured none.
const MachinePeaks& TypicalPeaks();

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_ROOFLINE_H_

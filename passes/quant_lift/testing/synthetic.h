// Graphs of any size for test and benchmark.
#ifndef FUSELAGE_PASSES_QUANT_LIFT_TESTING_SYNTHETIC_H_
#define FUSELAGE_PASSES_QUANT_LIFT_TESTING_SYNTHETIC_H_

#include <memory>

#include "ir/graph.h"

namespace fuselage::quant_lift {

struct Synthetic {
  const char* name;
  int nodes_of_unit;
  std::unique_ptr<ir::Graph> (*build)(const ir::OpRegistry& ops, int64_t units);
  int64_t (*nodes_after)(int64_t units);  // The graph's size once lifted.
};

// Blocks in sequence, one value with very many readers, one quantize below a chain of views, and the same with a
// dynamic quantize whose scale has a view for each of the chain.
extern const Synthetic kSynthetics[4];

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_TESTING_SYNTHETIC_H_

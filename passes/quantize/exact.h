// Values of which small errors decide what is selected.
#ifndef FUSELAGE_PASSES_QUANTIZE_EXACT_H_
#define FUSELAGE_PASSES_QUANTIZE_EXACT_H_

#include "ir/base/hash_map.h"
#include "ir/graph.h"

namespace fuselage::quantize {

// Operands that are `exact` (ir/op.h), and what these are made of without products: behind the last layers of a
// detector, boxes and scores.
HashSet<const ir::Node*> ExactValues(const ir::Graph& graph);

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_EXACT_H_

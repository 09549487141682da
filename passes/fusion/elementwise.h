// Chains of elementwise ops become one node:
//
//   mul(add(x, y), sigmoid(add(x, y)))  =>  fused_elementwise(x, y, steps=["add(0, 1)", "sigmoid(2)", "mul(2, 3)"])
//
// A chain is a node and, above it, all elementwise f32 nodes of its shape whose readers are all in the chain: it has
// one result, and what it saves is a write and a read of each value between. It pays on any machine.
#ifndef FUSELAGE_PASSES_FUSION_ELEMENTWISE_H_
#define FUSELAGE_PASSES_FUSION_ELEMENTWISE_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"

namespace fuselage::fusion {

absl::StatusOr<bool> FuseElementwise(ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::fusion

#endif  // FUSELAGE_PASSES_FUSION_ELEMENTWISE_H_

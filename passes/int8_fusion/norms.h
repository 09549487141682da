// A norm, what quantizes its result and what its input comes from become one node:
//
//   int8.quantize(rms_norm(x))                  =>  int8.rms_norm(x)
//   dynamic_quantize_symmetric(rms_norm(x))     =>  int8.rms_norm(x; dims)             codes and a scale for each row
//   ... of rms_norm(int8.dequantize(q))         =>  of q
//   ... of rms_norm(add(x, r))                  =>  int8.rms_norm(x, residual r)       the sum is its last result
//
// Likewise layer_norm. The fused node keeps the norm's name and module path, and stands where the first of them stood.
#ifndef FUSELAGE_PASSES_INT8_FUSION_NORMS_H_
#define FUSELAGE_PASSES_INT8_FUSION_NORMS_H_

#include <string>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "ir/match/batch.h"
#include "kernels/core/registry.h"
#include "passes/core/remarks.h"

namespace fuselage::int8_fusion {

// Which nodes can be one, or why they cannot; `norm` is a candidate where something quantizes its result.
struct FusableNorm {
  ir::Node* norm = nullptr;
  ir::Node* quantize = nullptr;    // Null: nothing quantizes its result.
  ir::Node* sum = nullptr;         // The add that it reads, or null.
  ir::Node* dequantize = nullptr;  // The int8.dequantize that it reads, or null.
  AttributeMap attributes;
  std::string why_not;  // Empty: they can.
  std::string variant;  // Of the kernel that runs them.
};
// `followers` has visited the nodes before `norm`.
FusableNorm FusableNormAt(ir::Node* norm, const match::BatchFollowers& followers,
                          const kernels::KernelRegistry& kernels);

// Where FusableNormAt says so. Returns the fused node.
absl::StatusOr<ir::Node*> FuseNorm(const FusableNorm& fusable, ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::int8_fusion

#endif  // FUSELAGE_PASSES_INT8_FUSION_NORMS_H_

// What a network computes of an image's bytes before it quantizes them is a table of 256 codes, or one for each
// channel:
//
//   int8.quantize(div(sub(to(x, f32), mean), std))   =>   int8.lookup(x)      x u8, mean and std constants
//   permute(int8.quantize(... of to(x, f32)))        =>   int8.lookup(permute(x))      pixels to planes
//
// Any chain of elementwise operators of one value, and constants that vary along the channels at most.
//
// So is what INT8 operators compute of one value's codes, where that is more than one operation:
//
//   int8.mul(x, int8.sigmoid(x))                     =>   int8.lookup(x)      x u8 or i8 codes
#ifndef FUSELAGE_PASSES_INT8_FUSION_LOOKUPS_H_
#define FUSELAGE_PASSES_INT8_FUSION_LOOKUPS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "passes/core/remarks.h"

namespace fuselage::int8_fusion {

// Which nodes can be one, or why they cannot.
struct FusableLookup {
  // In the graph's order, from the `to` to the quantize, or those that compute a function of codes; empty: none.
  std::vector<ir::Node*> chain;
  ir::Node* input = nullptr;      // What they are of.
  ir::Node* to_planes = nullptr;  // The permute that reads that, if it makes planes of pixels.
  int64_t tables = 1;
  std::string why_not;  // Empty: they can.
};
FusableLookup LookupOfBytesAt(ir::Node* last, const kernels::KernelRegistry& kernels);
// A function that is part of another one is to be found behind it: from the end of the graph on.
FusableLookup LookupOfCodesAt(ir::Node* last, const kernels::KernelRegistry& kernels);

// Where these say so. Returns the fused node.
absl::StatusOr<ir::Node*> FuseLookup(const FusableLookup& fusable, ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::int8_fusion

#endif  // FUSELAGE_PASSES_INT8_FUSION_LOOKUPS_H_

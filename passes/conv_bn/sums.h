// One convolution for a sum of several of one value, as networks have them that are trained in branches (RepVGG: Ding
// et al., 2021; MobileOne; RepViT): products and sums of the same inputs, so the weights add up.
//
//   a(x) + b(x) + ...  =>  a'(x) + ...    where each tap of b is a tap of a, and reads no more channels
//   bn(a(x) + x + ...) =>  bn(a'(x) + ...)  for a depthwise a: then bn can be folded
#ifndef FUSELAGE_PASSES_CONV_BN_SUMS_H_
#define FUSELAGE_PASSES_CONV_BN_SUMS_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/conv_bn/layers.h"
#include "passes/core/remarks.h"

namespace fuselage::conv_bn {

// Merges the terms of every sum; whether there were such.
absl::StatusOr<bool> MergeSums(ir::Graph& graph, Missed& missed, passes::Remarks& remarks);

}  // namespace fuselage::conv_bn

#endif  // FUSELAGE_PASSES_CONV_BN_SUMS_H_

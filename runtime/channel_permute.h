// A permute of channels between two views, as exporters write ShuffleNet's channel shuffle:
//
//   x [N, C, H, W] -> view [N, G, K, H, W] -> permute [N, K, G, H, W] -> view [N, C, H, W]
//
// Views speak of the row-major order. Where x lies in NHWC, all three are one permute of its innermost axes, and
// nothing is reordered.
#ifndef FUSELAGE_RUNTIME_CHANNEL_PERMUTE_H_
#define FUSELAGE_RUNTIME_CHANNEL_PERMUTE_H_

#include <vector>

#include "ir/graph.h"
#include "kernels/core/kernel.h"

namespace fuselage::runtime {

// The nodes in their order, the last of them being what others read.
struct ChannelPermute {
  const ir::Node *view, *permute, *last;

  const ir::Node& x() const { return *view->operand(0); }
};

// Those of the graph: views whose only reader is the next of the three.
std::vector<ChannelPermute> ChannelPermutesOf(const ir::Graph& graph);

// The permute that does it in NHWC: [N, H, W, G, K] -> [N, H, W, K, G], both row-major.
kernels::KernelDesc InNhwc(const ChannelPermute& channels);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_CHANNEL_PERMUTE_H_

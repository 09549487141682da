// A permute between two views that regroup what is behind the batch, as exporters write ShuffleNet's channel shuffle
// and the pixel shuffle of super-resolution (depth to space, and back):
//
//   x [N, C, H, W] -> view [N, G, K, H, W] -> permute [N, K, G, H, W] -> view [N, C, H, W]
//   x [N, R*R*C, H, W] -> view [N, R, R, C, H, W] -> permute [N, C, H, R, W, R] -> view [N, C, H*R, W*R]
//
// Views speak of the row-major order. Where x lies in NHWC, all three are one permute to NHWC, and nothing is
// reordered.
#ifndef FUSELAGE_RUNTIME_REGROUPING_H_
#define FUSELAGE_RUNTIME_REGROUPING_H_

#include <vector>

#include "ir/graph.h"
#include "kernels/core/kernel.h"

namespace fuselage::runtime {

// The nodes in their order, the last of them being what others read.
struct Regrouping {
  const ir::Node *view, *permute, *last;

  const ir::Node& x() const { return *view->operand(0); }
};

// Those of the graph: views whose only reader is the next of the three.
std::vector<Regrouping> RegroupingsOf(const ir::Graph& graph);

// The permute that does it in NHWC: row-major [N, H, W, G, K] -> [N, H, W, K, G], which is the last node's type in
// NHWC.
kernels::KernelDesc InNhwc(const Regrouping& regrouping);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_REGROUPING_H_

// A transposed convolution becomes a convolution:
//
//   conv_transpose2d(x, w; stride s)  =>  slice(depth_to_space(conv2d(x, w')))     the slice only where it takes less
//
// The pixels o of the result with the same o + padding modulo s, a phase, are a convolution of stride 1 of x with every
// s-th tap of w, flipped. So one convolution with s * s times the channels computes them all, and depth to space, two
// views and a permute between them, brings each to its place (Shi et al., "Is the deconvolution layer the same as a
// convolutional layer?", 2016). The channels of a phase stay side by side, so that in NHWC whole runs of them move.
// The convolution keeps the names of node and module, by which options speak of layers.
// A convolution has faster kernels, and kernels on codes; w' has as many products, where the stride divides the kernel.
//
// Declines: a kernel that the stride does not divide, whose phases would be filled up with zeros; dilation; padding
// beyond the taps; a module or a weight that others share; what is not f32.
#ifndef FUSELAGE_PASSES_FUSION_SUBPIXEL_H_
#define FUSELAGE_PASSES_FUSION_SUBPIXEL_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"

namespace fuselage::fusion {

absl::StatusOr<bool> RewriteConvTransposes(ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::fusion

#endif  // FUSELAGE_PASSES_FUSION_SUBPIXEL_H_

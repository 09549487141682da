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
// Elsewhere some phases have a tap less than others, and zeros in its place: that pays on codes (passes/quantize), not
// in floats.
//
// Declines: a stride larger than the kernel; dilation; padding beyond the taps; a module or a weight that others share;
// what is not f32.
#ifndef FUSELAGE_PASSES_FUSION_SUBPIXEL_H_
#define FUSELAGE_PASSES_FUSION_SUBPIXEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"

namespace fuselage::fusion {

// A spatial axis of a transposed convolution. Pixel o of the result sums x[i] * w[t] over i * stride + t = o + padding.
// Where o + cropped is j * stride + phase, t is phase + padding - cropped - (i - j) * stride.
struct PhasedAxis {
  int64_t input, output, kernel, stride, padding;
  int64_t cropped = 0;  // Pixels in front of the result.

  // The least and the largest i - j with a tap in some phase.
  int64_t first() const;
  int64_t last() const;
  int64_t taps() const { return last() - first() + 1; }  // Of a phase.
  int64_t pixels() const;                                // Of a phase.
  // The kernel's tap that is number `i` of a phase; outside the kernel where there is none.
  int64_t TapOf(int64_t phase, int64_t i) const { return phase + padding - cropped - (first() + i) * stride; }
  // The convolution's padding.
  int64_t begin() const { return -first(); }
  int64_t end() const { return pixels() + last() - input; }
  // Why it has no such convolution, if it is not dilated; empty where it has.
  std::string WhyNot() const;
};

// The spatial axis with index `i` of a conv_transpose1d, 2d, 3d with a constant weight.
PhasedAxis PhasedAxisOf(const ir::Node& node, int i);

// Why a conv_transpose2d cannot become a convolution; empty where it can.
std::string WhyNotSubpixel(const ir::Node& node);

// Rewrites one that can. The convolution takes `activation` in, the only reader; null: none.
absl::Status RewriteAsSubpixel(ir::Node* node, ir::Node* activation, ir::Graph& graph);

// Rewrites all whose kernel the stride divides.
absl::StatusOr<bool> RewriteConvTransposes(ir::Graph& graph, passes::Remarks& remarks);

}  // namespace fuselage::fusion

#endif  // FUSELAGE_PASSES_FUSION_SUBPIXEL_H_

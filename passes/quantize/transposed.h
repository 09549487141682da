// Transposed convolutions have no kernels on codes. Those that are to be quantized become convolutions, which have:
//
//   relu(conv_transpose2d(x, w))  =>  depth_to_space(conv2d(x, w'; activation="relu"))     (fusion/subpixel.h)
//
// Where the stride does not divide the kernel, w' has zeros, whose products would cost FP32 more than the form gains.
// The activation behind one goes along, but where `skip` names it.
//
// Declines: one whose convolution Select would leave in FP32, or that subpixel.h declines.
#ifndef FUSELAGE_PASSES_QUANTIZE_TRANSPOSED_H_
#define FUSELAGE_PASSES_QUANTIZE_TRANSPOSED_H_

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "passes/core/remarks.h"
#include "passes/quantize/select.h"

namespace fuselage::quantize {

// Rewrites them, and selects as Select does. What stays with `kept` does so with its activation.
absl::StatusOr<Selection> SelectWithTransposed(const QuantizeOptions& options, ir::Graph& graph,
                                               FourBitWeights& four_bits, passes::Remarks& remarks,
                                               KeptInFloat kept = {});

}  // namespace fuselage::quantize

#endif  // FUSELAGE_PASSES_QUANTIZE_TRANSPOSED_H_

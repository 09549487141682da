// Cross-layer equalization: scales the channels between layers, so that one scale of codes fits all of them.
//
//   y = conv2d(relu(conv2d(x, w1, b1)), w2)   =>   y = conv2d(relu(conv2d(x, w1 / s, b1 / s)), w2 * s)
//
// for conv1d/2d/3d and linear on either side, and anything between them through which a positive factor of a channel
// passes: relu, pools, views, additions, as ops of their own or as part of a layer; then all layers that write into the
// sum and all that read it share one s (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
// Correction", ICCV 2019, section 4.1).
//
// Behind a conv2d's activation that no factor passes (hardswish, silu; with what scales and shifts it) a product with
// 1 / s stands instead, which in INT8 is part of the conv2d's rounding. Run the pass behind fusion: an FP32 network
// that branches off there has no such products.
//
// s[c] balances the range r[c] of the channel in the calibration samples with the largest weight w[c] that
// reads it: s = r^a / w^(1-a), with the a of 0, 1/4 ... 1 for which the layers' outputs get the least noise by 8-bit
// inputs and weights (as in Xiao et al., "SmoothQuant", ICML 2023, where a is chosen by hand). Every s is a power of
// two, so no bit of the FP32 network changes, and nothing is scaled where that gains less than 1 dB. Where by the first
// samples nothing comes near that, they are all that are run.
//
// Declines: a channel that something else reads, too (a sigmoid, a graph output); a layer whose module has a second
// call site, or an activation of another kind; with narrow_clamps a clamp that is not at [0, max].
// Errors: no calibration data (UsageError: the caller's mistake); NaN or infinity in a sample.
#ifndef FUSELAGE_PASSES_EQUALIZATION_EQUALIZATION_H_
#define FUSELAGE_PASSES_EQUALIZATION_EQUALIZATION_H_

#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/equalization/equalization.pb.h"

namespace fuselage::equalization {

class Equalization : public passes::Pass {
 public:
  // `runner` gives the calibration samples; null: Run fails where there is something to equalize.
  Equalization(EqualizationOptions options, passes::Runner* runner) : options_(options), runner_(runner) {}

  absl::string_view name() const override { return "equalization"; }
  passes::NumericContract numeric_contract() const override {
    using passes::NumericContract;
    return {options_.narrow_clamps() ? NumericContract::kQuantizes : NumericContract::kBitExact, 1.0 / 32};
  }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;

 private:
  EqualizationOptions options_;
  passes::Runner* runner_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::equalization

#endif  // FUSELAGE_PASSES_EQUALIZATION_EQUALIZATION_H_

// Moves outliers of activations into the weights of the linears that read them (Xiao et al., "SmoothQuant", ICML 2023):
//
//   linear(layer_norm(x; g, b); w)       =>  linear(layer_norm(x; g / s, b / s); w * s)
//   linear(mul(a, linear(x; u, b)); w)   =>  linear(mul(a, linear(x; u / s, b / s)); w * s)      only per token
//
// with a factor s[c] for each channel c, and so for rms_norm, for a linear that is read without a mul, for any number
// of readers that share one s, and with views between that keep the last axis.
//
// s[c] = r[c]^a / w[c]^(1 - a), r the channel's range in the calibration samples, w its largest weight in any reader. a
// is the one of 0, 1/8 ... 1 for which the outputs of the readers, computed by the codes that the options name on a
// few rows of the samples, differ least from what they are in FP32. Every s is a power of two, within a factor of
// sqrt(2) of the paper's: no bit of the FP32 network changes. Nothing is scaled where that gains less than half a dB.
//
// Declines: a value that anything but linears reads; what is no norm over the last axis and no linear without an
// activation beyond relu (a gelu, an attention); a product whose factors get codes of their own, which would span
// unlike channels instead; a layer whose module has a second call site or weights that are not f32 and finite.
// Errors: no calibration data (UsageError: the caller's mistake); NaN or infinity in a sample.
#ifndef FUSELAGE_PASSES_SMOOTH_QUANT_SMOOTH_QUANT_H_
#define FUSELAGE_PASSES_SMOOTH_QUANT_SMOOTH_QUANT_H_

#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/smooth_quant/smooth_quant.pb.h"

namespace fuselage::smooth_quant {

class SmoothQuant : public passes::Pass {
 public:
  // `runner` gives the calibration samples; null: Run fails where there is something to scale.
  SmoothQuant(SmoothQuantOptions options, passes::Runner* runner) : options_(std::move(options)), runner_(runner) {}

  absl::string_view name() const override { return "smooth_quant"; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;

 private:
  SmoothQuantOptions options_;
  passes::Runner* runner_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::smooth_quant

#endif  // FUSELAGE_PASSES_SMOOTH_QUANT_SMOOTH_QUANT_H_

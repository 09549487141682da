// Rounds weights so that the outputs of a layer on calibration data move least, not each weight to what is nearest
// (Frantar et al., "GPTQ", ICLR 2023):
//
//   linear(x; w)   =>   linear(x; w')      w' of the values that codes can have, w' = argmin |x w^T - x w'^T|^2, nearly
//
// and so for conv2d, whose x are the inputs under its window, by groups of channels.
//
// Run it last before `quantize`, with the same `weights`: scales come out as they would without this pass, and codes
// give the values of w' exactly. The graph stays float.
//
// Columns are rounded one by one, those with the largest inputs first, and each takes in what the ones before did to
// the outputs (hessian.h). The largest weight of each scale is not moved, and an output channel for which rounding to
// nearest is no worse is rounded so. Inputs are those of the float network, unrounded.
//
// Declines: a graph that is quantized already; layers without a module or with a weight that is not f32 and finite;
// inputs that are constants.
// Ensures: weights of all other layers have values that codes can have.
// Errors: no calibration data (UsageError: the caller's mistake); NaN or infinity in a sample.
#ifndef FUSELAGE_PASSES_WEIGHT_ROUNDING_WEIGHT_ROUNDING_H_
#define FUSELAGE_PASSES_WEIGHT_ROUNDING_WEIGHT_ROUNDING_H_

#include <utility>

#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/weight_rounding/weight_rounding.pb.h"

namespace fuselage::weight_rounding {

class WeightRounding : public passes::Pass {
 public:
  // `runner` gives the calibration samples; null: Run fails where there is something to round.
  WeightRounding(WeightRoundingOptions options, passes::Runner* runner)
      : options_(std::move(options)), runner_(runner) {}

  absl::string_view name() const override { return "weight_rounding"; }
  passes::NumericContract numeric_contract() const override {
    // Codes, and the few numbers of four bits, through a few layers.
    const bool four_bits = options_.weights() == QuantizeOptions::MXFP4 || options_.weights() == QuantizeOptions::INT4;
    return {passes::NumericContract::kQuantizes, four_bits ? 1.0 / 4 : 1.0 / 32};
  }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
  absl::Status Ensures(const ir::Graph& graph) const override;

 private:
  WeightRoundingOptions options_;
  passes::Runner* runner_;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::weight_rounding

#endif  // FUSELAGE_PASSES_WEIGHT_ROUNDING_WEIGHT_ROUNDING_H_

// Quantizes a value once, as early as possible, so that the op above can take the quantize in:
//
//   quantize(x), quantize(x)        =>   one quantize(x)                 where the parameters are equal by value
//   quantize(view_2(view_1(x)))     =>   view_2(view_1(quantize(x)))     views: reshape, flatten, permute, ...
//
// A view with several readers moves to the codes when all of them end in equal quantizes.
// Declines: a view that a float op, the graph's output or a different quantize reads too; a view that loses or repeats
// elements (slice, expand); scales per axis; scales that are computed after the view.
#ifndef FUSELAGE_PASSES_QUANT_LIFT_QUANT_LIFT_H_
#define FUSELAGE_PASSES_QUANT_LIFT_QUANT_LIFT_H_

#include "passes/core/pass.h"
#include "passes/core/registry.h"
#include "passes/quant_lift/quant_lift.pb.h"

namespace fuselage::quant_lift {

class QuantLift : public passes::Pass {
 public:
  absl::string_view name() const override { return "quant_lift"; }
  // Elements keep their values, so their codes are the same bits: before the view as after it.
  passes::NumericContract numeric_contract() const override { return {passes::NumericContract::kBitExact, 0}; }

 protected:
  absl::StatusOr<bool> RunImpl(ir::Graph& graph, passes::Remarks& remarks) const override;
  // No value has two equal quantizes.
  absl::Status Ensures(const ir::Graph& graph) const override;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_QUANT_LIFT_H_

// Quantizes a value once, as early as possible, so that the op above can take the quantize in:
//
//   quantize(x), quantize(x)        =>   one quantize(x)                 where they do the same, however spelled
//   quantize(view_2(view_1(x)))     =>   view_2(view_1(quantize(x)))     views: reshape, flatten, permute, ...
//
// Likewise dynamic_quantize_symmetric, dynamic_quantize_asymmetric and dynamic_quantize_mxfp4, whose scale and offset
// go through views of their own:
//
//   q, s = dynamic_quantize_symmetric(permute(x))   =>   q', s' = dynamic_quantize_symmetric(x)
//                                                        q = permute(q'), s = permute(s')
//
// An axis of scales, dims and groups are remapped. A view with several readers moves to the codes when all of them end
// in equal quantizes. A constant scale that is read after the view is read anew in front of it. Declines: a view that a
// float op, the graph's output or a different quantize reads too; one that loses or repeats elements (slice, expand),
// but for slices of most of what an op computes for them alone, quantized with one constant scale; axes, dims or groups
// that are none in front of the view; scales that are computed after it; a tuple that is read as a whole; an in-place
// change between view and quantize.
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
  // No value has two equal quantizes, unless it changes in between.
  absl::Status Ensures(const ir::Graph& graph) const override;
};

void Register(passes::PassRegistry& registry);

}  // namespace fuselage::quant_lift

#endif  // FUSELAGE_PASSES_QUANT_LIFT_QUANT_LIFT_H_

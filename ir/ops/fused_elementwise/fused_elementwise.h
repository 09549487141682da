// fused_elementwise(x0, x1, ...; steps): a chain of elementwise operators as one, in one pass over memory.
//
//   fused_elementwise(%x, %y, steps=["add(0, 1)", "sigmoid(2)", "mul(2, 3)"])  =  z * sigmoid(z), z = x + y
//
// Operands are f32 and broadcast as numpy does. What steps are: ir/base/elementwise.h. Evaluation runs the steps' own
// reference, one after the other, so fusing changes no bit of it.
#ifndef FUSELAGE_IR_OPS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_
#define FUSELAGE_IR_OPS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_

#include "ir/op.h"

namespace fuselage::ops::fused_elementwise {

// `registry` must have the steps' operators by the time that a call is inferred.
void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::fused_elementwise

#endif  // FUSELAGE_IR_OPS_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_

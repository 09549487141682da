// Elementwise operators on codes, alone and as chains: int8.fused_elementwise, and int8.mul, int8.sigmoid, ... for each
// operator that can be a step of it and has no kernel of its own (add, relu).
//
//   v = f(float(q0 - z_0) * s_0, ...)          float32, by the arithmetic of ir/base/elementwise_math.h
//   q = clamp(rne(v / s_y) + z_y)              NaN becomes z_y
#ifndef FUSELAGE_IR_OPS_INT8_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_
#define FUSELAGE_IR_OPS_INT8_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_

#include "ir/op.h"

namespace fuselage::ops::int8::fused_elementwise {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::fused_elementwise

#endif  // FUSELAGE_IR_OPS_INT8_FUSED_ELEMENTWISE_FUSED_ELEMENTWISE_H_

// int8.linear: linear on codes (ir/ops/linear), with the arithmetic of ir/ops/int8/core.
//
// Operands input, weight, bias as int8.conv2d has them. Attributes: those of linear, out_dtype (u8, i8 or f32),
// out_scale, out_zero_point.
// With the optional operand input_scale, f32 [..., 1], each row of the input has a scale of its own, as
// dynamic_quantize_symmetric of dims=[-1] gives it: the input is i8 without parameters, the bias and the result f32.
#ifndef FUSELAGE_IR_OPS_INT8_LINEAR_LINEAR_H_
#define FUSELAGE_IR_OPS_INT8_LINEAR_LINEAR_H_

#include "ir/op.h"

namespace fuselage::ops::int8::linear {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::linear

#endif  // FUSELAGE_IR_OPS_INT8_LINEAR_LINEAR_H_

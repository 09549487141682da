// int8.matmul: matmul of codes by codes (ir/ops/matmul), both computed.
//
//   acc = sum (a - z_a) * (b - z_b)           int32, exact
//   q   = clamp(rne(float(acc) * m) + z_y)    m = (s_a * s_b) / s_y
//   y   = float(acc) * (s_a * s_b)            where the result is f32
//
// Operands input and other: u8 or i8 codes with one scale and any zero point; shapes as matmul has them. Attributes:
// out_dtype (u8, i8 or f32), out_scale, out_zero_point. K is at most 33,025, so that no sum leaves 32 bits.
#ifndef FUSELAGE_IR_OPS_INT8_MATMUL_MATMUL_H_
#define FUSELAGE_IR_OPS_INT8_MATMUL_MATMUL_H_

#include "ir/op.h"

namespace fuselage::ops::int8::matmul {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::matmul

#endif  // FUSELAGE_IR_OPS_INT8_MATMUL_MATMUL_H_

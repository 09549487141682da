// int8.add: v = fma(float(b - z_b), s_b/s_y, float(a - z_a) * (s_a/s_y)); result clamp(rne(v) + z_y), from z_y upwards
//   with activation "relu". Operands are u8 or i8 codes with one scale, and broadcast. alpha must be 1.
// int8.relu: v = float(x - z_x) * (s_x/s_y); result clamp(rne(v) + z_y) from z_y upwards. Where input and output share
//   scale and zero point that is max(x, z).
//
// Attributes: those of add and relu, out_dtype (u8 or i8), out_scale, out_zero_point.
#ifndef FUSELAGE_IR_OPS_INT8_ELEMENTWISE_ELEMENTWISE_H_
#define FUSELAGE_IR_OPS_INT8_ELEMENTWISE_ELEMENTWISE_H_

#include "ir/op.h"

namespace fuselage::ops::int8::elementwise {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::elementwise

#endif  // FUSELAGE_IR_OPS_INT8_ELEMENTWISE_ELEMENTWISE_H_

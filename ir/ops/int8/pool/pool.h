// Pools on u8 or i8 codes with one scale; windows as in ir/ops/pool.
//
// int8.max_pool2d: the largest code; the result keeps the input's parameters, so there are no out_ attributes.
// int8.avg_pool2d, int8.global_avg_pool: v = float(sum of x - z_x) * (s_x / (s_y * n)), where the mean divides by n
//   elements; result clamp(rne(v) + z_y). Attributes: those of the float op, out_dtype (u8 or i8), out_scale,
//   out_zero_point.
#ifndef FUSELAGE_IR_OPS_INT8_POOL_POOL_H_
#define FUSELAGE_IR_OPS_INT8_POOL_POOL_H_

#include "ir/op.h"

namespace fuselage::ops::int8::pool {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::pool

#endif  // FUSELAGE_IR_OPS_INT8_POOL_POOL_H_

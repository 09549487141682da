// int8.global_avg_pool_linear: int8.linear of int8.global_avg_pool, to the bit.
//
//   input         u8 or i8 codes [N, C, spatial...], one scale
//   weight, bias  as int8.linear has them; weight [out, C]
//   result        [N, out]
//
// Attributes: those of int8.linear, and those of int8.global_avg_pool with the prefix "pool_": pool_out_dtype,
// pool_out_scale, pool_out_zero_point, which the mean is rounded to.
#ifndef FUSELAGE_IR_OPS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_H_
#define FUSELAGE_IR_OPS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_H_

#include "ir/op.h"

namespace fuselage::ops::int8::global_avg_pool_linear {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::global_avg_pool_linear

#endif  // FUSELAGE_IR_OPS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_H_

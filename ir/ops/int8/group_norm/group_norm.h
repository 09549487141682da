// int8.group_norm and int8.instance_norm: the norms of these names (ir/ops/layer_norm) on u8 or i8 codes with one scale,
// to such codes. Sums of a group's n codes are exact, what follows is double until it is a channel's gain and offset:
//
//   mean     = sum (q - z) / n
//   variance = (n * sum (q - z)^2 - (sum (q - z))^2) / n^2
//   factor   = 1 / sqrt(variance * s^2 + eps)
//   gain     = float(factor * s * weight),  offset = float(bias - mean * factor * s * weight)
//   y        = f(fma(float(q - z), gain, offset))                 f: the activation
//   code     = clamp(rne(y / s_y) + z_y, lo, hi)                  lo, hi: of a clamp; otherwise all codes
//
// n is at most 2^23, so that no product above overflows 64 bits, and eps is positive.
#ifndef FUSELAGE_IR_OPS_INT8_GROUP_NORM_GROUP_NORM_H_
#define FUSELAGE_IR_OPS_INT8_GROUP_NORM_GROUP_NORM_H_

#include "ir/op.h"

namespace fuselage::ops::int8::group_norm {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::group_norm

#endif  // FUSELAGE_IR_OPS_INT8_GROUP_NORM_GROUP_NORM_H_

// int8.lookup(x, table): bytes to codes, as an image's become those that the first convolution reads, or as a function
// of codes gives them.
//
//   y[n, c, ...] = table[c, x[n, c, ...]]
//
// x: u8 [N, C, ...] without parameters, or u8 or i8 codes with one scale; an i8 code counts as its byte, 255 for -1.
// table: [C, 256] of the result's element type, or [1, 256] for all channels. Attributes: out_dtype (u8 or i8),
// out_scale, out_zero_point.
#ifndef FUSELAGE_IR_OPS_INT8_LOOKUP_LOOKUP_H_
#define FUSELAGE_IR_OPS_INT8_LOOKUP_LOOKUP_H_

#include "ir/op.h"

namespace fuselage::ops::int8::lookup {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::lookup

#endif  // FUSELAGE_IR_OPS_INT8_LOOKUP_LOOKUP_H_

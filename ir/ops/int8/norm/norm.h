// int8.layer_norm and int8.rms_norm: layer_norm and rms_norm (ir/ops/layer_norm) that end in a quantize, and may begin
// with a dequantize or a sum. To the bit what those ops are one after the other:
//
//   x = input                  f32; of u8 or i8 codes with one scale, their real values
//   x = input + residual       of f32, of one shape
//   y = quantize(norm(x))                                           without dims: out_dtype, out_scale, out_zero_point
//   y, s = dynamic_quantize_symmetric(norm(x), dims)                with dims
//
// Results: the codes y, the scales s where there are dims, and the sum x where there is a residual; y alone is no
// tuple. Operands and attributes are the norm's, besides residual, dims and out_*, which have no place beside dims.
#ifndef FUSELAGE_IR_OPS_INT8_NORM_NORM_H_
#define FUSELAGE_IR_OPS_INT8_NORM_NORM_H_

#include "ir/op.h"

namespace fuselage::ops::int8::norm {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::norm

#endif  // FUSELAGE_IR_OPS_INT8_NORM_NORM_H_

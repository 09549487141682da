// Quantization whose parameters come from the values themselves. All return tuples, for getitem.
//
// dynamic_quantize_symmetric(input; dims)  -> (i8 codes, f32 scale)
//   s = max|x| / 127 and q = rne(x / s), in [-127, 127].
// dynamic_quantize_asymmetric(input; dims) -> (u8 codes, f32 scale, u8 offset)
//   ONNX DynamicQuantizeLinear, which is dims=[] and an alias (dynamic_quantize_linear): the range is that of x and 0,
//   s = (max - min) / 255, offset = clamp(rne(-min / s)), q = clamp(rne(x / s) + offset).
//
//   One scale over the axes `dims` together, for each index of the others: scale and offset have the input's shape with
//   dims set to 1. dims=[]: one for the whole tensor, shape []. The input is f32; quotients are rounded to f32, then
//   half to even. A scale is normal: where all values are zero, or so small that s would not be, it is 1. An infinity
//   or NaN, and a range that overflows, are errors.
//
// dynamic_quantize_mxfp4(input; group_size) -> (u8 codes, u8 scale)
// dequantize_mxfp4(codes, scale; group_size) -> f32
//   MXFP4 of the OCP Microscaling Formats (MX) Specification v1.0: E2M1 codes, one in the low bits of each u8, and an
//   E8M0 scale for each `group_size` values along the last axis; the last group may be shorter. The scale has the
//   input's shape with the last axis ceil(n / group_size). See mxfp4.h for the formats.
//   - A group's scale is 2^(floor(log2(max|x|)) - 2), not below 2^-127; where all values are zero it is 1.
//   - Codes round half to even; beyond 6 they saturate. Zeros keep their sign.
//   - A group that holds an infinity or NaN, which E2M1 lacks, has the scale NaN and codes 0: it reads as all NaN.
//
// dequantize_groups(codes, scale; group_size) -> f32
//   code * scale of i8 codes, rounded once, with an f32 scale for each `group_size` of them as above.
#ifndef FUSELAGE_IR_OPS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_
#define FUSELAGE_IR_OPS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_

#include "ir/op.h"

namespace fuselage::ops::dynamic_quantize {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::dynamic_quantize

#endif  // FUSELAGE_IR_OPS_DYNAMIC_QUANTIZE_DYNAMIC_QUANTIZE_H_

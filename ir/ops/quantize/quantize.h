// Quantization as ONNX defines it, to the bit (QuantizeLinear, DequantizeLinear).
//
// quantize(input, scale?, zero_point?; scales, zero_points, axis, dtype): q = clamp(rne(x / s) + z)
//   x is f32 or i32; the quotient is rounded to f32, then half to even. NaN becomes the zero point. Parameters come
//   - from the attributes (zero_points may be empty: zeros): the result's type then carries them, or
//   - from the operands, f32 and `dtype`: the result's type then carries none.
//   axis -1: one scale for the tensor; otherwise one for each index along `axis`.
// dequantize(input, scale?, zero_point?; scales, zero_points, axis): x = float(q - z) * s, in f32
//   Parameters come from the operands, else the attributes, else the input's type.
//
// A scale must be a normal float > 0; one that is computed is checked when it is there.
#ifndef FUSELAGE_IR_OPS_QUANTIZE_QUANTIZE_H_
#define FUSELAGE_IR_OPS_QUANTIZE_QUANTIZE_H_

#include "ir/op.h"

namespace fuselage::ops::quantize {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::quantize

#endif  // FUSELAGE_IR_OPS_QUANTIZE_QUANTIZE_H_

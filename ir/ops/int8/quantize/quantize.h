// int8.quantize: f32 -> codes, clamp(rne(x / s) + z) with a true f32 division; NaN becomes the zero point.
//   Attributes: out_dtype (u8 or i8), out_scale, out_zero_point.
// int8.dequantize: codes with one scale -> f32, float(q - z) * s.
#ifndef FUSELAGE_IR_OPS_INT8_QUANTIZE_QUANTIZE_H_
#define FUSELAGE_IR_OPS_INT8_QUANTIZE_QUANTIZE_H_

#include "ir/op.h"

namespace fuselage::ops::int8::quantize {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::quantize

#endif  // FUSELAGE_IR_OPS_INT8_QUANTIZE_QUANTIZE_H_

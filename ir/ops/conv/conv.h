// conv1d, conv2d, conv3d: convolution with what may be fused into it (ONNX Conv; torch.nn.functional.conv2d).
//
//   input  [N, C, spatial...]
//   weight [OC, C/groups, kernel...]   parameter; may be quantized, and then means its dequantized values
//   bias   [OC]                        parameter, optional
//   residual, of the result's shape    optional
//   result [N, OC, spatial'...] = activation(conv(input, weight) + bias + residual)
//
// spatial' = floor((spatial + begin + end - dilation*(kernel - 1) - 1) / stride) + 1
// Attributes: stride, dilation (one value an axis), padding (begins, then ends, as ONNX orders them), groups,
// activation (ir/base/activation.h).
// Floats accumulate in double and are rounded once. i32 and i64 are exact modulo 2^bits, without an activation.
//
// conv_integer1d, 2d, 3d: the convolution of input - input_zero_point, zero in the padding, with weight -
// weight_zero_point, in i32, modulo 2^32 (ONNX ConvInteger). Both are u8 or i8 without parameters; a zero point is
// optional, of the operand's type, and broadcasts to it. stride, dilation, padding and groups as above.
#ifndef FUSELAGE_IR_OPS_CONV_CONV_H_
#define FUSELAGE_IR_OPS_CONV_CONV_H_

#include "ir/op.h"

namespace fuselage::ops::conv {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::conv

#endif  // FUSELAGE_IR_OPS_CONV_CONV_H_

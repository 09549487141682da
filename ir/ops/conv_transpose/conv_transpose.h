// conv_transpose1d, conv_transpose2d, conv_transpose3d: the gradient of a convolution with respect to its input
// (ONNX ConvTranspose; torch.nn.functional.conv_transpose2d).
//
//   input  [N, C, spatial...]
//   weight [C, OC/groups, kernel...]   parameter; may be quantized, and then means its dequantized values
//   bias   [OC]                        parameter, optional
//   result [N, OC, spatial'...]
//
// spatial' = (spatial - 1)*stride - begin - end + dilation*(kernel - 1) + 1 + output_padding, at least 1.
// Attributes: stride, dilation, output_padding (one value an axis), padding (begins, then ends), groups.
// Floats only; accumulates in double.
#ifndef FUSELAGE_IR_OPS_CONV_TRANSPOSE_CONV_TRANSPOSE_H_
#define FUSELAGE_IR_OPS_CONV_TRANSPOSE_CONV_TRANSPOSE_H_

#include "ir/op.h"

namespace fuselage::ops::conv_transpose {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::conv_transpose

#endif  // FUSELAGE_IR_OPS_CONV_TRANSPOSE_CONV_TRANSPOSE_H_

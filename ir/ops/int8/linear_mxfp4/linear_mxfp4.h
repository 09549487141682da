// int8.linear_mxfp4: linear of i8 codes, a scale for each row, with weights in MXFP4 (OCP Microscaling Formats (MX)
// Specification v1.0): E2M1 codes in groups of 32 along the features, an E8M0 scale for each; the last may be shorter.
//
//   input        i8 [..., K]             plain codes
//   weight       u8 [N, K]               parameter: E2M1 codes, in the low bits of each
//   weight_scale u8 [N, ceil(K / 32)]    parameter: E8M0, each in [2, 254]
//   input_scale  f32 [..., 1]
//   bias         f32 [N]                 parameter, optional
//   result       f32 [..., N]
//
// Twice an E2M1 number is an integer, so a group's sum is exact, and the groups add up in their order:
//   acc[g] = sum x * 2w
//   t      = fma(float(acc[g]), 2^(weight_scale[g] - 128), t)
//   y      = activation(fma(t, input_scale, bias))
// Attribute: activation.
#ifndef FUSELAGE_IR_OPS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_H_
#define FUSELAGE_IR_OPS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_H_

#include "ir/op.h"

namespace fuselage::ops::int8::linear_mxfp4 {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::linear_mxfp4

#endif  // FUSELAGE_IR_OPS_INT8_LINEAR_MXFP4_LINEAR_MXFP4_H_

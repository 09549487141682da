// int8.linear_groups: linear of i8 codes, a scale for each row, with weights in groups along the features, a scale for
// each; the last group may be shorter.
//
//   input        i8 [..., K]             plain codes
//   weight       i8 [N, K]               parameter
//   weight_scale f32 [N, ceil(K / G)]    parameter, finite; G is the attribute group_size
//   input_scale  f32 [..., 1]
//   bias         f32 [N]                 parameter, optional
//   result       f32 [..., N]
//
// or in MXFP4 (OCP Microscaling Formats (MX) Specification v1.0):
//   weight       u8 [N, K]               E2M1 codes, in the low bits of each
//   weight_scale u8 [N, ceil(K / 32)]    E8M0, each in [2, 254]; group_size is 32
//
// A group's sum is exact (twice an E2M1 number is an integer), and the groups add up in their order:
//   acc[g] = sum x * w                   MXFP4: sum x * 2w
//   t      = fma(float(acc[g]), s[g], t) s = weight_scale; MXFP4: 2^(weight_scale - 128)
//   y      = activation(fma(t, input_scale, bias))
// Attributes: activation, group_size (32).
#ifndef FUSELAGE_IR_OPS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_
#define FUSELAGE_IR_OPS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_

#include "ir/op.h"

namespace fuselage::ops::int8::linear_groups {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::linear_groups

#endif  // FUSELAGE_IR_OPS_INT8_LINEAR_GROUPS_LINEAR_GROUPS_H_

// int8.conv2d: conv2d on codes (ir/ops/conv), with the arithmetic of ir/ops/int8/core.
//
//   input    u8 or i8 codes, one scale; padding is real zero
//   weight   i8 codes, zero point 0, one scale or one an output channel
//   bias     f32, or i32 in steps of s_x*s_w[c]; optional
//   residual u8 or i8 codes of the result's shape; optional, only with codes as the result
//   post_scale, post_shift
//            f32, one an output channel; both or none, behind an activation that is no clamp: of its real value, before
//            that is rounded
//
// Attributes: those of conv2d, out_dtype (u8, i8 or f32), out_scale, out_zero_point, and which variant of the kernel is
// to run it where it can (as "avx512_vnni winograd"; all have the same bits).
#ifndef FUSELAGE_IR_OPS_INT8_CONV2D_CONV2D_H_
#define FUSELAGE_IR_OPS_INT8_CONV2D_CONV2D_H_

#include "ir/op.h"

namespace fuselage::ops::int8::conv2d {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::conv2d

#endif  // FUSELAGE_IR_OPS_INT8_CONV2D_CONV2D_H_

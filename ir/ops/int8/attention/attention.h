// int8.attention: scaled_dot_product_attention of codes (ir/ops/attention): integer products, a softmax whose weights
// are codes too.
//
//   s[j] = float(sum_d (q[d] - z_q) * (k[j][d] - z_k)) * m     m = (s_q * s_k) * scale; the sum is int32, exact
//   s[j] = softcap * tanh(s[j] / softcap), where there is one;  s[j] = s[j] + mask[j], -inf where a bool is false
//   p[j] = rne(255 * e^(s[j] - max s))                         0 for NaN, and where max s is -inf
//   r    = (s_v / s_y) / float(sum_j p[j])                     0 where that sum is 0
//   y[e] = clamp(rne(float(sum_j p[j] * (v[j][e] - z_v)) * r) + z_y)
//   y[e] = float(sum_j p[j] * (v[j][e] - z_v)) * (s_v / float(sum_j p[j]))      where the result is f32
//
// All sums are of integers, so no order of them is part of this. Float arithmetic is float32, one rounding an
// operation; e^ is AttentionWeight's (ir/base/attention_weight.h), tanh that of ir/base/elementwise_math.h.
//
// Operands query, key, value: u8 or i8 codes with one scale and any zero point; mask, of f32 or bools, is taken as it
// is. Shapes and attributes are scaled_dot_product_attention's, besides out_dtype (u8, i8 or f32), out_scale and
// out_zero_point. D and the number of keys are at most 33,025, so that no sum leaves 32 bits.
#ifndef FUSELAGE_IR_OPS_INT8_ATTENTION_ATTENTION_H_
#define FUSELAGE_IR_OPS_INT8_ATTENTION_ATTENTION_H_

#include "ir/op.h"

namespace fuselage::ops::int8::attention {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::attention

#endif  // FUSELAGE_IR_OPS_INT8_ATTENTION_ATTENTION_H_

// scaled_dot_product_attention: each query's mean of the values, weighed by how well it fits the keys
// (torch.nn.functional.scaled_dot_product_attention, ONNX Attention; Vaswani et al., "Attention is all you need",
// 2017).
//   query [..., H, S, D], key [..., K, T, D], value [..., K, T, E] -> [..., H, S, E]
//   s[i][j] = scale * sum_d query[i][d] * key[j][d];  where softcap is not 0: softcap * tanh(s / softcap)
//   where a mask of floats is given: s + mask;  of bools: s where it is true, else -inf
//   where is_causal: -inf for j > i
//   y[i] = sum_j e^s[i][j] * value[j] / sum_j e^s[i][j], and 0 where all of s[i] are -inf
//   Leading axes but the last of them, H, are alike; each of the K heads of keys serves H / K consecutive heads of
//   queries. Without leading axes there is one head. mask broadcasts to [..., H, S, T].
//   Floats only, mask of the same type or bool; sums in double.
#ifndef FUSELAGE_IR_OPS_ATTENTION_ATTENTION_H_
#define FUSELAGE_IR_OPS_ATTENTION_ATTENTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/op.h"

namespace fuselage::ops::attention {

void Register(ir::OpRegistry& registry);

// What it shares with int8.attention (ir/ops/int8/attention).
std::vector<ir::OperandSpec> AttentionOperands();
std::vector<ir::AttributeSpec> AttentionAttributes();
// The result's shape. Checks shapes, softcap and mask, which is of bools or of `mask`.
absl::StatusOr<Shape> CheckAttention(const ir::InferCall& call, DType mask);
// What is added to the score of each pair, [..., H, S, T]: the mask, and -inf where it or is_causal forbids the key.
std::vector<double> MaskOf(const ir::EvaluateCall& call, const Shape& scores);

}  // namespace fuselage::ops::attention

#endif  // FUSELAGE_IR_OPS_ATTENTION_ATTENTION_H_

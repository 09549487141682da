// The arithmetic of lowered INT8 operators, to the bit (docs/arithmetic.md), as the reference evaluation has it. It is
// written independently of kernels/, so that the one checks the other.
//
//   acc = sum x*w                             exact
//   a   = acc + b32[c]                        b32 = rne(bias / (s_x*s_w[c])) - z_x * sum w
//   v   = float(a) * m[c]                     m = (s_x * s_w[c]) / s_y
//   v   = fma(float(r - z_r), m_r, v)         only with a fused residual r;  m_r = s_r / s_y
//   q   = clamp(rne(v) + z_y, lo, hi)         fused ReLU: lo = max(lo, z_y)
//   y   = fma(float(acc - z_x * sum w), s_x * s_w[c], bias[c])    where the output stays float
//
// With a function f in front of the clamp, m = s_x * s_w[c], m_r = s_r, q = clamp(rne(f(v) * (1 / s_y)) + z_y, lo, hi)
// and clamp(f(y)).
#ifndef FUSELAGE_IR_OPS_INT8_CORE_ARITHMETIC_H_
#define FUSELAGE_IR_OPS_INT8_CORE_ARITHMETIC_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/activation.h"
#include "ir/op.h"

namespace fuselage::ops::int8 {

// out_dtype (u8, i8, or f32 where the op can), out_scale, out_zero_point: what the result's type is made of.
std::vector<ir::AttributeSpec> OutputAttributes();
// The result that they ask for.
absl::StatusOr<ir::Type> OutputType(const ir::OpCall& call, Shape shape);

// u8 or i8 with per-tensor parameters.
absl::Status CheckCodes(const ir::InferCall& call, int i);
// i8, zero points 0, per tensor or along `axis`.
absl::Status CheckWeight(const ir::InferCall& call, int i, int axis);
// Operand 1, weight: the same along axis 0. Operand 2, bias: f32, or i32, in steps of
// s_x*s_w[c] unless its type says otherwise.
absl::Status CheckWeightAndBias(const ir::InferCall& call);

// From a real value in steps of the result's scale to its code.
struct Rounding {
  int32_t zero_point = 0, lo = 0, hi = 255;

  // v is clamped to +-2^30 as a float, so that it fits an integer.
  int32_t operator()(float v) const;
};
Rounding RoundingOf(const TensorType& codes, const Activation& activation = {});

// numerator / denominator, a multiplier of the arithmetic: FailedPrecondition where it is no normal float.
absl::StatusOr<float> Multiplier(float numerator, float denominator, absl::string_view what);

// x - z_x of each element, or x where codes have no parameters: exact integers.
std::vector<double> Centered(const Tensor& codes);

// The result of a convolution or linear layer from the exact sums of (x - z_x) * w, [batch, channels, pixels]: the
// call's operands are input, weight, bias? and, by name, residual? or input_scale?, [batch] scales of an input without
// parameters; it has the attribute activation. FailedPrecondition where
// 255 * sum|w| + |b32| < 2^31 does not hold, or a multiplier is no normal float.
absl::StatusOr<Tensor> Requantized(const ir::EvaluateCall& call, const std::vector<double>& sums, int64_t channels);

}  // namespace fuselage::ops::int8

#endif  // FUSELAGE_IR_OPS_INT8_CORE_ARITHMETIC_H_

// Elementwise functions of one tensor, result of the input's type:
//
//   relu         max(x, 0)                    clamp(min, max)       min(max(x, min), max)
//   relu6        min(max(x, 0), 6)            threshold(threshold, value)   x > threshold ? x : value
//   sigmoid      1 / (1 + e^-x)               tanh
//   silu         x * sigmoid(x)               gelu(approximate)     "none": x * Phi(x);  "tanh": its approximation
//   hardsigmoid(alpha, beta)                  max(0, min(1, alpha*x + beta))
//   hardswish    x * hardsigmoid(x)           leaky_relu(negative_slope)
//   softplus     ln(1 + e^x)                  softsign              x / (1 + |x|)
//   mish         x * tanh(softplus(x))        elu(alpha)            x < 0 ? alpha * (e^x - 1) : x
//   selu(alpha, gamma)  gamma * elu(x)        celu(alpha)           x < 0 ? alpha * (e^(x/alpha) - 1) : x
//
//   abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor isinf(detect_negative,
//   detect_positive) isnan log logical_not neg reciprocal round (half to even) sign sin sinh sqrt tan
//
// Definitions: ONNX operators of the same names, torch and torch.nn.functional (hardsigmoid's default alpha is
// PyTorch's 1/6). Floats, computed in double; relu, relu6, clamp, threshold, abs, neg and sign also take integers,
// modulo 2^bits, bitwise_not only those. isinf and isnan give bools, logical_not takes them too. NaN stays NaN.
#ifndef FUSELAGE_IR_OPS_UNARY_UNARY_H_
#define FUSELAGE_IR_OPS_UNARY_UNARY_H_

#include "ir/op.h"

namespace fuselage::ops::unary {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::unary

#endif  // FUSELAGE_IR_OPS_UNARY_UNARY_H_

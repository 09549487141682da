// Elementwise functions of one tensor, result of the input's type:
//
//   relu         max(x, 0)                    clamp(min, max)       min(max(x, min), max)
//   relu6        min(max(x, 0), 6)
//   sigmoid      1 / (1 + e^-x)               tanh
//   silu         x * sigmoid(x)               gelu(approximate)     "none": x * Phi(x);  "tanh": its approximation
//   hardsigmoid(alpha, beta)                  max(0, min(1, alpha*x + beta))
//   hardswish    x * hardsigmoid(x)           leaky_relu(negative_slope)
//
// Definitions: ONNX operators of the same names, torch.nn.functional (hardsigmoid's default alpha is PyTorch's 1/6).
// Floats, computed in double; relu, relu6 and clamp also take integers. NaN stays NaN.
#ifndef FUSELAGE_IR_OPS_UNARY_UNARY_H_
#define FUSELAGE_IR_OPS_UNARY_UNARY_H_

#include "ir/op.h"

namespace fuselage::ops::unary {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::unary

#endif  // FUSELAGE_IR_OPS_UNARY_UNARY_H_

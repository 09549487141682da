// Elementwise functions of two tensors of one element type, with NumPy broadcasting:
//
//   add(input, other; alpha, activation)   activation(input + alpha * other), activation "none" or "relu"
//   sub, mul, div
//
// Definitions: ONNX Add, Sub, Mul, Div; torch.add for alpha. Floats compute in double. Integers are exact modulo
// 2^bits; their division truncates toward zero, and by zero it is an error.
#ifndef FUSELAGE_IR_OPS_BINARY_BINARY_H_
#define FUSELAGE_IR_OPS_BINARY_BINARY_H_

#include "ir/op.h"

namespace fuselage::ops::binary {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::binary

#endif  // FUSELAGE_IR_OPS_BINARY_BINARY_H_

// Elementwise functions of two tensors of one element type, with NumPy broadcasting:
//
//   add(input, other; alpha, activation)   activation(input + alpha * other), activation "none" or "relu"
//   sub, mul, div, pow, maximum, minimum
//   fmod (the sign of input), remainder (the sign of other)
//   prelu                                  input < 0 ? other * input : input
//   eq, ne, gt, ge, lt, le                 bools
//   logical_and, logical_or, logical_xor   of bools
//   bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift   of integers
//
// Definitions: ONNX Add, Sub, Mul, Div, Pow, Max, Min, Mod, PRelu, Equal, ...; torch.add for alpha and torch's
// functions of the same names, but for prelu, whose slopes broadcast as ONNX has it. Floats compute in double; maximum
// and minimum with a NaN are NaN. Integers are exact modulo 2^bits; their division and powers truncate toward zero, and
// by zero they are an error. A shift by less than 0 or more than 63 leaves nothing but the sign.
#ifndef FUSELAGE_IR_OPS_BINARY_BINARY_H_
#define FUSELAGE_IR_OPS_BINARY_BINARY_H_

#include "ir/op.h"

namespace fuselage::ops::binary {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::binary

#endif  // FUSELAGE_IR_OPS_BINARY_BINARY_H_

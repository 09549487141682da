// int8.rnn, int8.gru, int8.lstm: recurrent layers (ir/ops/recurrent) whose products are int8.linear's, of codes.
//
//   x*W' + b_W    int8.linear(x, W, b_W)       x: u8 or i8 codes with one scale; the result f32
//   h*R' + b_R    int8.linear(q(h), R, b_R)    q(h): i8 codes of scale 1/127 and zero point 0
//
// What follows is float32, each operation of ir/ops/recurrent rounded once: the first product, plus the second, plus
// the peephole's; activations as in ir/base/elementwise_math.h. States, and r*h of a gru that resets first, are codes
// for their product alone.
//
// Operands and attributes are the float op's, but weight and recurrent_weight: i8 with zero point 0 and one scale, or
// one for each index of axis 1, which all directions share. Activations keep states within [-1, 1]: sigmoid,
// hard_sigmoid, tanh, softsign. An initial_h beyond that saturates.
#ifndef FUSELAGE_IR_OPS_INT8_RECURRENT_RECURRENT_H_
#define FUSELAGE_IR_OPS_INT8_RECURRENT_RECURRENT_H_

#include "ir/op.h"

namespace fuselage::ops::int8::recurrent {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::int8::recurrent

#endif  // FUSELAGE_IR_OPS_INT8_RECURRENT_RECURRENT_H_

// rnn, gru, lstm: layers that read a sequence step by step (ONNX RNN, GRU, LSTM; Hochreiter and Schmidhuber, 1997; Cho
// et al., 2014). All return tuples, for getitem.
//
//   input            [T, N, I]       T steps of N sequences
//   weight           [D, G*H, I]     parameter; D directions, G gates of H units; may be quantized, and then means its
//                                    dequantized values
//   recurrent_weight [D, G*H, H]     parameter, likewise
//   bias             [D, 2*G*H]      parameter, optional: that of the input's product, then that of the state's
//   sequence_lens    i32 [N]         optional: steps of each sequence, in [0, T]; what lies behind is ignored, its y is
//   0 initial_h        [D, N, H]       optional; initial_c, of lstm, likewise: 0 where absent peepholes        [D, 3*H]
//   parameter of lstm, optional: weights of c in the gates i, o, f
//   -> (y [T, D, N, H], y_h [D, N, H]) and for lstm y_c [D, N, H]: the states of all steps, and those after the last
//
// With p = x*W' + h*R' + biases, cut into gates:
//
//   rnn   h = f(p)
//   gru   gates z, r, h:    z = f(p_z), r = f(p_r), n = g(p_h), h = (1 - z)*n + z*h
//         The state's part of p_h is (r*h)*R_h' + b; if linear_before_reset r*(h*R_h' + b), which is PyTorch's.
//   lstm  gates i, o, f, c: i = f(p_i + P_i*c), f = f(p_f + P_f*c), c = f*c + i*g(p_c), o = f(p_o + P_o*c), h = o*h(c)
//         with the new c in o and h; if input_forget f = 1 - i.
//
// Attributes: direction "forward", "reverse" or "bidirectional" (D = 2, the second backwards, from each sequence's last
// step); activations, of f (and g, h) of each direction: none for ONNX's defaults (rnn tanh; gru sigmoid, tanh; lstm
// sigmoid, tanh, tanh), alpha and beta: a number for each of them, or none; clip > 0: each gate's p stays in
// [-clip, clip] (as in onnxruntime, which does not clip c).
// Floats only; computes in double.
#ifndef FUSELAGE_IR_OPS_RECURRENT_RECURRENT_H_
#define FUSELAGE_IR_OPS_RECURRENT_RECURRENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/recurrent.h"
#include "ir/op.h"

namespace fuselage::ops::recurrent {

enum Operand { kInput, kWeight, kRecurrentWeight, kBias, kSequenceLens, kInitialH, kInitialC, kPeepholes };

// Operands and attributes of "rnn", "gru" or "lstm", which its quantized form shares; no name, type and evaluation.
ir::OpSchema RecurrentSchema(absl::string_view op);

// "lstm" of lstm and of int8.lstm.
const std::string& FloatOpOf(const ir::OpCall& call);
int DirectionsOf(const ir::OpCall& call);
absl::StatusOr<std::vector<fuselage::recurrent::ActivationCall>> ActivationsOf(const ir::OpCall& call);

// The result, whose states are of `state_type`: from shapes and attributes, and the types of what is no product's.
absl::StatusOr<ir::Type> CheckRecurrent(const ir::InferCall& call, DType state_type);

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::recurrent

#endif  // FUSELAGE_IR_OPS_RECURRENT_RECURRENT_H_

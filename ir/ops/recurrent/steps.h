// The steps of rnn, gru and lstm, whose products and arithmetic are the caller's.
#ifndef FUSELAGE_IR_OPS_RECURRENT_STEPS_H_
#define FUSELAGE_IR_OPS_RECURRENT_STEPS_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/recurrent.h"
#include "ir/op.h"

namespace fuselage::ops::recurrent {

// Real: double or float, of which each operation that recurrent.h writes rounds once.
template <typename Real>
struct Arithmetic {
  using Reals = std::vector<Real>;
  // x*W' and h*R' with their biases, [G*H], of a direction: x is row t*N + n of the input, h [H].
  std::function<absl::StatusOr<Reals>(int64_t direction, int64_t row)> input_product;
  std::function<absl::StatusOr<Reals>(int64_t direction, const Reals& h)> state_product;
  std::function<Real(const fuselage::recurrent::ActivationCall&, Real)> activate;
};

// The results of a call of rnn, gru, lstm or a quantized form of them.
template <typename Real>
absl::StatusOr<std::vector<Tensor>> EvaluateSteps(const ir::EvaluateCall& call, const Arithmetic<Real>& arithmetic);

extern template absl::StatusOr<std::vector<Tensor>> EvaluateSteps(const ir::EvaluateCall&, const Arithmetic<float>&);
extern template absl::StatusOr<std::vector<Tensor>> EvaluateSteps(const ir::EvaluateCall&, const Arithmetic<double>&);

// The part of an operand that belongs to a direction; empty where it is absent.
std::vector<double> PartOf(const ir::EvaluateCall& call, int operand, int64_t direction);

}  // namespace fuselage::ops::recurrent

#endif  // FUSELAGE_IR_OPS_RECURRENT_STEPS_H_

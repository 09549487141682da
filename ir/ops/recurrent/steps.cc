#include "ir/ops/recurrent/steps.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/values.h"
#include "ir/ops/recurrent/recurrent.h"

namespace fuselage::ops::recurrent {
namespace {

using fuselage::recurrent::ActivationCall;

// One direction of a layer.
template <typename Real>
class Layer {
 public:
  using Reals = std::vector<Real>;

  Layer(const ir::EvaluateCall& call, int64_t direction, const ActivationCall* activations,
        const Arithmetic<Real>& arithmetic)
      : op_(FloatOpOf(call)),
        direction_(direction),
        units_(call.tensor(kRecurrentWeight).dim(2)),
        activations_(activations),
        arithmetic_(arithmetic),
        clip_(static_cast<Real>(call.GetFloat("clip"))),
        linear_before_reset_(op_ == "gru" && call.GetBool("linear_before_reset")),
        input_forget_(op_ == "lstm" && call.GetBool("input_forget")) {
    for (const double weight : PartOf(call, kPeepholes, direction)) peepholes_.push_back(static_cast<Real>(weight));
  }

  // From row `row` of the input.
  absl::Status Step(int64_t row, Reals& h, Reals& c) const {
    ASSIGN_OR_RETURN(const Reals from_input, arithmetic_.input_product(direction_, row));
    ASSIGN_OR_RETURN(const Reals from_state, arithmetic_.state_product(direction_, h));
    if (op_ == "rnn") Rnn(from_input, from_state, h);
    if (op_ == "lstm") Lstm(from_input, from_state, h, c);
    return op_ == "gru" ? Gru(from_input, from_state, h) : absl::OkStatus();
  }

 private:
  void Rnn(const Reals& x, const Reals& state, Reals& h) const {
    for (int64_t j = 0; j < units_; ++j) h[j] = Activate(0, Clip(x[j] + state[j]));
  }

  absl::Status Gru(const Reals& x, const Reals& state, Reals& h) const {
    Reals update(units_), reset(units_), kept(units_);
    for (int64_t j = 0; j < units_; ++j) {
      update[j] = Activate(0, Clip(x[j] + state[j]));
      reset[j] = Activate(0, Clip(x[units_ + j] + state[units_ + j]));
      kept[j] = reset[j] * h[j];
    }
    Reals of_kept;
    if (!linear_before_reset_) {
      ASSIGN_OR_RETURN(of_kept, arithmetic_.state_product(direction_, kept));
    }
    for (int64_t j = 0; j < units_; ++j) {
      const int64_t row = 2 * units_ + j;
      const Real from_state = linear_before_reset_ ? reset[j] * state[row] : of_kept[row];
      const Real next = Activate(1, Clip(x[row] + from_state));
      h[j] = (1 - update[j]) * next + update[j] * h[j];
    }
    return absl::OkStatus();
  }

  void Lstm(const Reals& x, const Reals& state, Reals& h, Reals& c) const {
    const auto sum = [&](int64_t gate, int64_t j) { return x[gate * units_ + j] + state[gate * units_ + j]; };
    const auto peep = [&](int64_t k, int64_t j) { return peepholes_.empty() ? 0 : peepholes_[k * units_ + j] * c[j]; };
    for (int64_t j = 0; j < units_; ++j) {
      const Real input = Activate(0, Clip(sum(0, j) + peep(0, j)));
      const Real forget = input_forget_ ? 1 - input : Activate(0, Clip(sum(2, j) + peep(2, j)));
      c[j] = forget * c[j] + input * Activate(1, Clip(sum(3, j)));
      h[j] = Activate(0, Clip(sum(1, j) + peep(1, j))) * Activate(2, c[j]);
    }
  }

  Real Clip(Real x) const {
    if (!(clip_ > 0)) return x;
    return x < -clip_ ? -clip_ : x > clip_ ? clip_ : x;
  }
  Real Activate(int which, Real x) const { return arithmetic_.activate(activations_[which], x); }

  const std::string op_;
  const int64_t direction_, units_;
  const ActivationCall* const activations_;  // f, g, h.
  const Arithmetic<Real>& arithmetic_;
  const Real clip_;
  const bool linear_before_reset_, input_forget_;
  Reals peepholes_;
};

absl::StatusOr<std::vector<int64_t>> LengthsOf(const ir::EvaluateCall& call) {
  const int64_t steps = call.tensor(kInput).dim(0), sequences = call.tensor(kInput).dim(1);
  if (!call.has(kSequenceLens)) return std::vector<int64_t>(sequences, steps);
  std::vector<int64_t> lengths = Integers(call.tensor(kSequenceLens));
  for (int64_t length : lengths) {
    if (length < 0 || length > steps) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence_lens: found ", length, ", wanted values in [0, ", steps, "]"));
    }
  }
  return lengths;
}

// Sequence n of the part of an initial state; zeros where it is absent.
template <typename Real>
std::vector<Real> StateOf(const std::vector<double>& part, int64_t n, int64_t units) {
  if (part.empty()) return std::vector<Real>(units, 0);
  return {part.begin() + n * units, part.begin() + (n + 1) * units};
}

}  // namespace

std::vector<double> PartOf(const ir::EvaluateCall& call, int operand, int64_t direction) {
  if (!call.has(operand)) return {};
  const std::vector<double> values = RealValues(call.tensor(operand));
  const int64_t size = static_cast<int64_t>(values.size()) / call.tensor(operand).dim(0);
  return {values.begin() + direction * size, values.begin() + (direction + 1) * size};
}

template <typename Real>
absl::StatusOr<std::vector<Tensor>> EvaluateSteps(const ir::EvaluateCall& call, const Arithmetic<Real>& arithmetic) {
  const int64_t sequences = call.tensor(kInput).dim(1), units = call.tensor(kRecurrentWeight).dim(2);
  const int64_t directions = DirectionsOf(call);
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, LengthsOf(call));
  ASSIGN_OR_RETURN(const std::vector<ActivationCall> activations, ActivationsOf(call));
  const std::vector<TensorType>& types = call.result_type->elements();
  std::vector<double> y(types[0].num_elements()), last_h(types[1].num_elements()), last_c(types[1].num_elements());
  for (int64_t d = 0; d < directions; ++d) {
    const Layer<Real> layer(call, d, activations.data() + d * activations.size() / directions, arithmetic);
    const bool backwards = d == 1 || call.GetString("direction") == "reverse";
    const std::vector<double> first_h = PartOf(call, kInitialH, d), first_c = PartOf(call, kInitialC, d);
    for (int64_t n = 0; n < sequences; ++n) {
      std::vector<Real> h = StateOf<Real>(first_h, n, units), c = StateOf<Real>(first_c, n, units);
      for (int64_t s = 0; s < lengths[n]; ++s) {
        const int64_t t = backwards ? lengths[n] - 1 - s : s;
        RETURN_IF_ERROR(layer.Step(t * sequences + n, h, c));
        std::copy(h.begin(), h.end(), y.begin() + ((t * directions + d) * sequences + n) * units);
      }
      std::copy(h.begin(), h.end(), last_h.begin() + (d * sequences + n) * units);
      std::copy(c.begin(), c.end(), last_c.begin() + (d * sequences + n) * units);
    }
  }
  std::vector<Tensor> results;
  results.push_back(OfReals(types[0], y));
  results.push_back(OfReals(types[1], last_h));
  if (types.size() > 2) results.push_back(OfReals(types[2], last_c));
  return results;
}

template absl::StatusOr<std::vector<Tensor>> EvaluateSteps(const ir::EvaluateCall&, const Arithmetic<float>&);
template absl::StatusOr<std::vector<Tensor>> EvaluateSteps(const ir::EvaluateCall&, const Arithmetic<double>&);

}  // namespace fuselage::ops::recurrent

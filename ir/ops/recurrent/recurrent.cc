#include "ir/ops/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/recurrent.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::recurrent {
namespace {

using fuselage::recurrent::Activation;
using fuselage::recurrent::ActivationCall;
using fuselage::recurrent::GatesOf;

enum Operand { kInput, kWeight, kRecurrentWeight, kBias, kSequenceLens, kInitialH, kInitialC, kPeepholes };

int DirectionsOf(const ir::OpCall& call) { return call.GetString("direction") == "bidirectional" ? 2 : 1; }

absl::StatusOr<std::vector<ActivationCall>> ActivationsOf(const ir::OpCall& call) {
  return fuselage::recurrent::ReadActivations(call.schema().name, DirectionsOf(call),
                                              call.attribute("activations").as_strings(), call.GetFloats("alpha"),
                                              call.GetFloats("beta"));
}

absl::StatusOr<ir::Type> InferRecurrent(const ir::InferCall& call) {
  const bool lstm = call.schema().name == "lstm";
  RETURN_IF_ERROR(CheckOneOf(call, "direction", {"forward", "reverse", "bidirectional"}));
  if (const auto activations = ActivationsOf(call); !activations.ok()) return activations.status();
  const double clip = call.GetFloat("clip");
  if (!(clip >= 0 && std::isfinite(clip))) return AttributeError(call, "clip", "finite and >= 0");
  RETURN_IF_ERROR(CheckRank(call, kInput, 3));
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  RETURN_IF_ERROR(CheckRank(call, kRecurrentWeight, 3));
  const TensorType& input = call.tensor(kInput);
  const int64_t steps = input.shape[0], sequences = input.shape[1], units = call.tensor(kRecurrentWeight).shape[2];
  const int64_t directions = DirectionsOf(call), gates = GatesOf(call.schema().name);
  RETURN_IF_ERROR(
      ResultType(input.dtype, {directions, 2 * gates, units}).status());  // The sizes below do not overflow.
  const Shape state = {directions, sequences, units};
  const std::vector<std::pair<int, Shape>> shapes = {{kWeight, {directions, gates * units, input.shape[2]}},
                                                     {kRecurrentWeight, {directions, gates * units, units}},
                                                     {kBias, {directions, 2 * gates * units}},
                                                     {kInitialH, state},
                                                     {kInitialC, state},
                                                     {kPeepholes, {directions, 3 * units}}};
  for (const auto& [operand, shape] : shapes) {
    if (!call.has(operand)) continue;
    RETURN_IF_ERROR(CheckShape(call, operand, shape));
    RETURN_IF_ERROR(CheckDType(call, operand, input.dtype));
    RETURN_IF_ERROR(CheckNoCodes(call, operand));
  }
  if (call.has(kSequenceLens)) {
    RETURN_IF_ERROR(CheckDType(call, kSequenceLens, DType::kI32));
    RETURN_IF_ERROR(CheckShape(call, kSequenceLens, {sequences}));
  }
  std::vector<TensorType> results;
  for (const Shape& shape : {Shape{steps, directions, sequences, units}, state, state}) {
    if (results.size() == 2 && !lstm) break;
    ASSIGN_OR_RETURN(const ir::Type type, ResultType(input.dtype, shape));
    results.push_back(type.tensor());
  }
  return ir::Type::Tuple(std::move(results));
}

// Each state that the layer gives (the result's element 0) is made of `gates` products with input and state.
ir::Cost CostOfRecurrent(const ir::InferCall& call, const ir::Type& result) {
  const int64_t inputs = call.tensor(kInput).shape[2], units = call.tensor(kRecurrentWeight).shape[2];
  return {ir::NumElements(result.elements()[0]) * static_cast<double>(GatesOf(call.schema().name)) *
          (static_cast<double>(inputs) + static_cast<double>(units))};
}

double Apply(const ActivationCall& call, double x) {
  const double alpha = call.alpha, beta = call.beta;
  switch (call.activation) {
    case Activation::kAffine: return alpha * x + beta;
    case Activation::kElu: return x >= 0 ? x : alpha * std::expm1(x);
    case Activation::kHardSigmoid: return std::max(0.0, std::min(1.0, alpha * x + beta));
    case Activation::kLeakyRelu: return x >= 0 ? x : alpha * x;
    case Activation::kRelu: return Relu(x);
    case Activation::kScaledTanh: return alpha * std::tanh(beta * x);
    case Activation::kSigmoid: return 1 / (1 + std::exp(-x));
    case Activation::kSoftsign: return x / (1 + std::abs(x));
    case Activation::kTanh: return std::tanh(x);
    case Activation::kThresholdedRelu: return x > alpha ? x : 0;
  }
  return 0;
}

// One direction of a layer, with its operands as doubles; empty where absent.
struct Layer {
  const ActivationCall* activations;  // f, g, h.
  int64_t inputs, units, gates;
  std::vector<double> weight, recurrent_weight, bias, peepholes;
  double clip;
  bool linear_before_reset = false, input_forget = false;

  double Clip(double x) const { return clip > 0 ? std::max(-clip, std::min(clip, x)) : x; }

  // Row `row` of the weights times x, and of the recurrent ones times h, each with its bias.
  double FromInput(int64_t row, const double* x) const {
    double sum = bias.empty() ? 0 : bias[row];
    for (int64_t k = 0; k < inputs; ++k) sum += weight[row * inputs + k] * x[k];
    return sum;
  }
  double FromState(int64_t row, const double* h) const {
    double sum = bias.empty() ? 0 : bias[gates * units + row];
    for (int64_t k = 0; k < units; ++k) sum += recurrent_weight[row * units + k] * h[k];
    return sum;
  }
  double Gate(int64_t row, const double* x, const double* h, double peephole = 0) const {
    return Clip(FromInput(row, x) + FromState(row, h) + peephole);
  }

  void Rnn(const double* x, std::vector<double>& h) const {
    std::vector<double> next(units);
    for (int64_t j = 0; j < units; ++j) next[j] = Apply(activations[0], Gate(j, x, h.data()));
    h = next;
  }

  void Gru(const double* x, std::vector<double>& h) const {
    std::vector<double> reset(units), next(units);
    for (int64_t j = 0; j < units; ++j) reset[j] = Apply(activations[0], Gate(units + j, x, h.data()));
    std::vector<double> kept(units);
    for (int64_t j = 0; j < units; ++j) kept[j] = reset[j] * h[j];
    for (int64_t j = 0; j < units; ++j) {
      const int64_t row = 2 * units + j;
      const double state = linear_before_reset ? reset[j] * FromState(row, h.data()) : FromState(row, kept.data());
      const double update = Apply(activations[0], Gate(j, x, h.data()));
      next[j] = (1 - update) * Apply(activations[1], Clip(FromInput(row, x) + state)) + update * h[j];
    }
    h = next;
  }

  void Lstm(const double* x, std::vector<double>& h, std::vector<double>& c) const {
    std::vector<double> next(units);
    const auto peephole = [&](int64_t k, int64_t j) { return peepholes.empty() ? 0 : peepholes[k * units + j] * c[j]; };
    for (int64_t j = 0; j < units; ++j) {
      const double input = Apply(activations[0], Gate(j, x, h.data(), peephole(0, j)));
      const double forget =
          input_forget ? 1 - input : Apply(activations[0], Gate(2 * units + j, x, h.data(), peephole(2, j)));
      c[j] = forget * c[j] + input * Apply(activations[1], Gate(3 * units + j, x, h.data()));
      next[j] = Apply(activations[0], Gate(units + j, x, h.data(), peephole(1, j))) * Apply(activations[2], c[j]);
    }
    h = next;
  }
};

// The part of an operand that belongs to a direction; empty where it is absent.
std::vector<double> PartOf(const ir::EvaluateCall& call, int operand, int64_t direction) {
  if (!call.has(operand)) return {};
  const std::vector<double> values = RealValues(call.tensor(operand));
  const int64_t size = static_cast<int64_t>(values.size()) / call.tensor(operand).dim(0);
  return {values.begin() + direction * size, values.begin() + (direction + 1) * size};
}

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

absl::StatusOr<std::vector<Tensor>> EvaluateRecurrent(const ir::EvaluateCall& call) {
  const std::string& op = call.schema().name;
  const Tensor& input = call.tensor(kInput);
  const int64_t sequences = input.dim(1), inputs = input.dim(2);
  const int64_t directions = DirectionsOf(call), units = call.tensor(kRecurrentWeight).dim(2);
  const std::vector<double> x = RealValues(input);
  ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, LengthsOf(call));
  ASSIGN_OR_RETURN(const std::vector<ActivationCall> activations, ActivationsOf(call));
  const std::vector<TensorType>& types = call.result_type->elements();
  std::vector<double> y(types[0].num_elements()), last_h(types[1].num_elements()), last_c(types[1].num_elements());
  for (int64_t d = 0; d < directions; ++d) {
    Layer layer{activations.data() + d * fuselage::recurrent::ActivationsOf(op),
                inputs,
                units,
                GatesOf(op),
                PartOf(call, kWeight, d),
                PartOf(call, kRecurrentWeight, d),
                PartOf(call, kBias, d),
                PartOf(call, kPeepholes, d),
                call.GetFloat("clip")};
    if (op == "gru") layer.linear_before_reset = call.GetBool("linear_before_reset");
    if (op == "lstm") layer.input_forget = call.GetBool("input_forget");
    const bool backwards = d == 1 || call.GetString("direction") == "reverse";
    const std::vector<double> first_h = PartOf(call, kInitialH, d), first_c = PartOf(call, kInitialC, d);
    for (int64_t n = 0; n < sequences; ++n) {
      std::vector<double> h(units, 0), c(units, 0);
      if (!first_h.empty()) h.assign(first_h.begin() + n * units, first_h.begin() + (n + 1) * units);
      if (!first_c.empty()) c.assign(first_c.begin() + n * units, first_c.begin() + (n + 1) * units);
      for (int64_t s = 0; s < lengths[n]; ++s) {
        const int64_t t = backwards ? lengths[n] - 1 - s : s;
        const double* from = x.data() + (t * sequences + n) * inputs;
        if (op == "rnn") layer.Rnn(from, h);
        if (op == "gru") layer.Gru(from, h);
        if (op == "lstm") layer.Lstm(from, h, c);
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

ir::OpSchema Schema(const char* name) {
  ir::OpSchema schema;
  schema.name = name;
  schema.operands = {{"input"},
                     {"weight", /*optional=*/false, /*parameter=*/true},
                     {"recurrent_weight", /*optional=*/false, /*parameter=*/true},
                     {"bias", /*optional=*/true, /*parameter=*/true},
                     {"sequence_lens", /*optional=*/true},
                     {"initial_h", /*optional=*/true}};
  schema.attributes = {{"direction", AttributeKind::kString, "forward"},
                       {"activations", AttributeKind::kStrings, std::vector<std::string>{}},
                       {"alpha", AttributeKind::kFloats, std::vector<double>{}},
                       {"beta", AttributeKind::kFloats, std::vector<double>{}},
                       {"clip", AttributeKind::kFloat, 0.0}};
  schema.module_form = true;
  schema.infer = InferRecurrent;
  schema.evaluate = EvaluateRecurrent;
  schema.cost = CostOfRecurrent;
  return schema;
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  registry.Register(Schema("rnn"));
  ir::OpSchema gru = Schema("gru");
  gru.attributes.push_back({"linear_before_reset", AttributeKind::kBool, false});
  registry.Register(std::move(gru));
  ir::OpSchema lstm = Schema("lstm");
  lstm.operands.push_back({"initial_c", /*optional=*/true});
  lstm.operands.push_back({"peepholes", /*optional=*/true, /*parameter=*/true});
  lstm.attributes.push_back({"input_forget", AttributeKind::kBool, false});
  registry.Register(std::move(lstm));
}

}  // namespace fuselage::ops::recurrent

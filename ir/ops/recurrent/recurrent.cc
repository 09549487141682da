#include "ir/ops/recurrent/recurrent.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/recurrent/steps.h"

namespace fuselage::ops::recurrent {
namespace {

using fuselage::recurrent::Activation;
using fuselage::recurrent::ActivationCall;
using fuselage::recurrent::GatesOf;

absl::StatusOr<ir::Type> InferRecurrent(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  const DType dtype = call.tensor(kInput).dtype;
  for (const Operand weight : {kWeight, kRecurrentWeight}) RETURN_IF_ERROR(CheckParameterDType(call, weight, dtype));
  return CheckRecurrent(call, dtype);
}

// Each state that the layer gives (the result's element 0) is made of `gates` products with input and state.
ir::Cost CostOfRecurrent(const ir::InferCall& call, const ir::Type& result) {
  const int64_t inputs = call.tensor(kInput).shape[2], units = call.tensor(kRecurrentWeight).shape[2];
  return {ir::NumElements(result.elements()[0]) * static_cast<double>(GatesOf(FloatOpOf(call))) *
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

// [rows, depth], with a bias for each row, or none.
struct Matrix {
  std::vector<double> weight, bias;
  int64_t rows, depth;

  std::vector<double> Times(const double* x) const {
    std::vector<double> sums = bias;
    sums.resize(rows);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t k = 0; k < depth; ++k) sums[row] += weight[row * depth + k] * x[k];
    }
    return sums;
  }
};

// The matrix of a direction; `second`: its bias is the second half.
Matrix MatrixOf(const ir::EvaluateCall& call, Operand operand, int64_t direction, bool second) {
  const Shape& shape = call.tensor(operand).shape();
  Matrix matrix{PartOf(call, operand, direction), PartOf(call, kBias, direction), shape[1], shape[2]};
  if (matrix.bias.empty()) return matrix;
  const auto begin = matrix.bias.begin() + (second ? matrix.rows : 0);
  matrix.bias = std::vector<double>(begin, begin + matrix.rows);
  return matrix;
}

absl::StatusOr<std::vector<Tensor>> EvaluateRecurrent(const ir::EvaluateCall& call) {
  const std::vector<double> x = RealValues(call.tensor(kInput));
  std::vector<Matrix> of_input, of_state;
  for (int64_t d = 0; d < DirectionsOf(call); ++d) {
    of_input.push_back(MatrixOf(call, kWeight, d, /*second=*/false));
    of_state.push_back(MatrixOf(call, kRecurrentWeight, d, /*second=*/true));
  }
  Arithmetic<double> arithmetic;
  arithmetic.input_product = [&](int64_t d, int64_t row) {
    return of_input[d].Times(x.data() + row * of_input[d].depth);
  };
  arithmetic.state_product = [&](int64_t d, const std::vector<double>& h) { return of_state[d].Times(h.data()); };
  arithmetic.activate = Apply;
  return EvaluateSteps(call, arithmetic);
}

}  // namespace

const std::string& FloatOpOf(const ir::OpCall& call) {
  const ir::OpSchema& schema = call.schema();
  return schema.quantized_form_of.empty() ? schema.name : schema.quantized_form_of;
}

int DirectionsOf(const ir::OpCall& call) { return call.GetString("direction") == "bidirectional" ? 2 : 1; }

absl::StatusOr<std::vector<ActivationCall>> ActivationsOf(const ir::OpCall& call) {
  return fuselage::recurrent::ReadActivations(FloatOpOf(call), DirectionsOf(call),
                                              call.attribute("activations").as_strings(), call.GetFloats("alpha"),
                                              call.GetFloats("beta"));
}

absl::StatusOr<ir::Type> CheckRecurrent(const ir::InferCall& call, DType state_type) {
  const std::string& op = FloatOpOf(call);
  RETURN_IF_ERROR(CheckOneOf(call, "direction", {"forward", "reverse", "bidirectional"}));
  if (const auto activations = ActivationsOf(call); !activations.ok()) return activations.status();
  const double clip = call.GetFloat("clip");
  if (!(clip >= 0 && std::isfinite(clip))) return AttributeError(call, "clip", "finite and >= 0");
  RETURN_IF_ERROR(CheckRank(call, kInput, 3));
  RETURN_IF_ERROR(CheckRank(call, kRecurrentWeight, 3));
  const TensorType& input = call.tensor(kInput);
  const int64_t steps = input.shape[0], sequences = input.shape[1], units = call.tensor(kRecurrentWeight).shape[2];
  const int64_t directions = DirectionsOf(call), gates = GatesOf(op);
  RETURN_IF_ERROR(ResultType(state_type, {directions, 2 * gates, units}).status());  // The sizes below do not overflow.
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
    if (operand == kWeight || operand == kRecurrentWeight) continue;
    RETURN_IF_ERROR(CheckDType(call, operand, state_type));
    RETURN_IF_ERROR(CheckNoCodes(call, operand));
  }
  if (call.has(kSequenceLens)) {
    RETURN_IF_ERROR(CheckDType(call, kSequenceLens, DType::kI32));
    RETURN_IF_ERROR(CheckShape(call, kSequenceLens, {sequences}));
  }
  std::vector<TensorType> results;
  for (const Shape& shape : {Shape{steps, directions, sequences, units}, state, state}) {
    if (results.size() == 2 && op != "lstm") break;
    ASSIGN_OR_RETURN(const ir::Type type, ResultType(state_type, shape));
    results.push_back(type.tensor());
  }
  return ir::Type::Tuple(std::move(results));
}

ir::OpSchema RecurrentSchema(absl::string_view op) {
  ir::OpSchema schema;
  schema.operands = {
      {"input"},
      {"weight", /*optional=*/false, /*parameter=*/true, /*variadic=*/false, /*channel_axis=*/1},
      {"recurrent_weight", /*optional=*/false, /*parameter=*/true, /*variadic=*/false, /*channel_axis=*/1},
      {"bias", /*optional=*/true, /*parameter=*/true},
      {"sequence_lens", /*optional=*/true},
      {"initial_h", /*optional=*/true}};
  schema.attributes = {{"direction", AttributeKind::kString, "forward"},
                       {"activations", AttributeKind::kStrings, std::vector<std::string>{}},
                       {"alpha", AttributeKind::kFloats, std::vector<double>{}},
                       {"beta", AttributeKind::kFloats, std::vector<double>{}},
                       {"clip", AttributeKind::kFloat, 0.0}};
  if (op == "gru") schema.attributes.push_back({"linear_before_reset", AttributeKind::kBool, false});
  if (op == "lstm") {
    schema.operands.push_back({"initial_c", /*optional=*/true});
    schema.operands.push_back({"peepholes", /*optional=*/true, /*parameter=*/true});
    schema.attributes.push_back({"input_forget", AttributeKind::kBool, false});
  }
  schema.module_form = true;
  schema.cost = CostOfRecurrent;
  return schema;
}

void Register(ir::OpRegistry& registry) {
  for (const char* op : {"rnn", "gru", "lstm"}) {
    ir::OpSchema schema = RecurrentSchema(op);
    schema.name = op;
    schema.infer = InferRecurrent;
    schema.evaluate = EvaluateRecurrent;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::recurrent

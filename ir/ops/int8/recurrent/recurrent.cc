#include "ir/ops/int8/recurrent/recurrent.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/elementwise_math.h"
#include "ir/base/recurrent.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/int8/core/arithmetic.h"
#include "ir/ops/int8/linear/linear.h"
#include "ir/ops/int8/quantize/quantize.h"
#include "ir/ops/recurrent/recurrent.h"
#include "ir/ops/recurrent/steps.h"

namespace fuselage::ops::int8::recurrent {
namespace {

using fuselage::recurrent::Activation;
using fuselage::recurrent::ActivationCall;
using ops::recurrent::Operand;

constexpr int kChannelAxis = 1;  // Of the weights.

absl::StatusOr<ir::Type> InferRecurrent(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, ops::recurrent::kInput));
  RETURN_IF_ERROR(CheckWeight(call, ops::recurrent::kWeight, kChannelAxis));
  RETURN_IF_ERROR(CheckWeight(call, ops::recurrent::kRecurrentWeight, kChannelAxis));
  ASSIGN_OR_RETURN(ir::Type type, ops::recurrent::CheckRecurrent(call, DType::kF32));
  ASSIGN_OR_RETURN(const std::vector<ActivationCall> activations, ops::recurrent::ActivationsOf(call));
  RETURN_IF_ERROR(fuselage::recurrent::CheckStatesAreBounded(ops::recurrent::FloatOpOf(call), activations));
  return type;
}

// Of those that keep states bounded.
float Apply(const ActivationCall& call, float x) {
  switch (call.activation) {
    case Activation::kHardSigmoid:
      return elementwise::Hardsigmoid(x, static_cast<float>(call.alpha), static_cast<float>(call.beta));
    case Activation::kSigmoid: return elementwise::Sigmoid(x);
    case Activation::kSoftsign: return x / (1.0f + elementwise::Magnitude(x));
    default: return elementwise::Tanh(x);
  }
}

const ir::OpRegistry& Parts() {
  static const auto* const parts = [] {
    auto* ops = new ir::OpRegistry;
    linear::Register(*ops);
    quantize::Register(*ops);
    return ops;
  }();
  return *parts;
}

// One of the ops that this one is made of.
absl::StatusOr<Tensor> Run(absl::string_view op, const AttributeMap& attributes, const std::vector<Tensor>& operands) {
  const ir::OpSchema& schema = *Parts().FindOrNull(op);
  std::vector<ir::Type> types;
  std::vector<std::vector<Tensor>> values;
  for (const Tensor& operand : operands) {
    types.emplace_back(operand.type());
    values.push_back({operand});
  }
  std::vector<const ir::Type*> type_pointers;
  std::vector<const std::vector<Tensor>*> value_pointers;
  for (size_t i = 0; i < operands.size(); ++i) {
    type_pointers.push_back(&types[i]);
    value_pointers.push_back(&values[i]);
  }
  ASSIGN_OR_RETURN(const ir::Type type, ir::Infer(schema, attributes, type_pointers));
  ASSIGN_OR_RETURN(std::vector<Tensor> results, ir::Evaluate(schema, attributes, value_pointers, type));
  return std::move(results[0]);
}

// The weight of a direction [G*H, depth], and its half of the bias where there is one.
struct Layer {
  std::vector<Tensor> weight_and_bias;

  absl::StatusOr<Tensor> Times(const Tensor& x) const {
    std::vector<Tensor> operands = {x};
    operands.insert(operands.end(), weight_and_bias.begin(), weight_and_bias.end());
    return Run("int8.linear", {{"out_dtype", DType::kF32}}, operands);
  }
};

Layer LayerOf(const ir::EvaluateCall& call, Operand operand, int64_t direction) {
  const Tensor& weight = call.tensor(operand);
  const int64_t rows = weight.dim(1), depth = weight.dim(2);
  QuantParams quant = *weight.type().quant;
  if (!quant.per_tensor()) quant.axis = 0;
  Tensor part({DType::kI8, {rows, depth}, std::move(quant), Layout::kRowMajor});
  std::copy_n(weight.data<int8_t>() + direction * rows * depth, rows * depth, part.data<int8_t>());
  Layer layer{{std::move(part)}};
  if (!call.has(ops::recurrent::kBias)) return layer;
  const int64_t half = 2 * direction + (operand == ops::recurrent::kRecurrentWeight ? 1 : 0);
  Tensor bias(DType::kF32, {rows});
  std::copy_n(call.tensor(ops::recurrent::kBias).data<float>() + half * rows, rows, bias.data<float>());
  layer.weight_and_bias.push_back(std::move(bias));
  return layer;
}

absl::StatusOr<std::vector<Tensor>> EvaluateRecurrent(const ir::EvaluateCall& call) {
  Tensor x = call.tensor(ops::recurrent::kInput);
  const int64_t rows = x.dim(0) * x.dim(1), gates = call.tensor(ops::recurrent::kWeight).dim(1);
  x.set_type({x.dtype(), {rows, x.dim(2)}, x.type().quant, Layout::kRowMajor});
  std::vector<Tensor> from_input;
  std::vector<Layer> of_state;
  for (int64_t d = 0; d < ops::recurrent::DirectionsOf(call); ++d) {
    ASSIGN_OR_RETURN(from_input.emplace_back(), LayerOf(call, ops::recurrent::kWeight, d).Times(x));
    of_state.push_back(LayerOf(call, ops::recurrent::kRecurrentWeight, d));
  }
  ops::recurrent::Arithmetic<float> arithmetic;
  arithmetic.input_product = [&](int64_t d, int64_t row) {
    const float* sums = from_input[d].data<float>() + row * gates;
    return std::vector<float>(sums, sums + gates);
  };
  const AttributeMap codes = {{"out_dtype", DType::kI8}, {"out_scale", double{fuselage::recurrent::kStateScale}}};
  arithmetic.state_product = [&](int64_t d, const std::vector<float>& h) -> absl::StatusOr<std::vector<float>> {
    ASSIGN_OR_RETURN(const Tensor q,
                     Run("int8.quantize", codes, {Tensor::Of<float>({1, static_cast<int64_t>(h.size())}, h)}));
    ASSIGN_OR_RETURN(const Tensor sums, of_state[d].Times(q));
    return std::vector<float>(sums.data<float>(), sums.data<float>() + gates);
  };
  arithmetic.activate = Apply;
  return ops::recurrent::EvaluateSteps(call, arithmetic);
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const char* op : {"rnn", "gru", "lstm"}) {
    ir::OpSchema schema = ops::recurrent::RecurrentSchema(op);
    schema.name = absl::StrCat("int8.", op);
    schema.quantized_form_of = op;
    schema.float_result = true;
    schema.infer = InferRecurrent;
    schema.evaluate = EvaluateRecurrent;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::int8::recurrent

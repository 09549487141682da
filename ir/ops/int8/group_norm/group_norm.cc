#include "ir/ops/int8/group_norm/group_norm.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/cost.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"
#include "ir/ops/int8/core/part.h"
#include "ir/ops/layer_norm/layer_norm.h"

namespace fuselage::ops::int8::group_norm {
namespace {

enum Operand { kInput, kWeight, kBias };

constexpr int64_t kMostElements = int64_t{1} << 23;  // Of a group.

int64_t ChannelsOfGroup(const ir::OpCall& call, const Shape& shape) {
  return call.schema().FindAttributeOrNull("num_groups") == nullptr ? 1 : shape[1] / call.GetInt("num_groups");
}

int64_t PixelsOf(const Shape& shape) {
  int64_t pixels = 1;
  for (size_t axis = 2; axis < shape.size(); ++axis) pixels *= shape[axis];
  return pixels;
}

absl::StatusOr<ir::Type> Infer(const Part& norm, const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, kInput));
  const Shape& shape = call.tensor(kInput).shape;
  const ir::Type floats(TensorType{DType::kF32, shape, std::nullopt, Layout::kRowMajor});
  std::vector<const ir::Type*> operands = call.operands;
  operands[kInput] = &floats;
  RETURN_IF_ERROR(norm.Infer(call, operands).status());
  if (!(call.GetFloat("eps") > 0)) return AttributeError(call, "eps", "above 0");
  const int64_t elements = ChannelsOfGroup(call, shape) * PixelsOf(shape);
  if (elements > kMostElements) {
    return OperandError(call, kInput,
                        absl::StrCat("groups of ", elements, " elements, wanted at most ", kMostElements));
  }
  return OutputType(call, shape);
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::EvaluateCall& call) {
  const std::vector<double> x = Centered(call.tensor(kInput));
  const Shape& shape = call.tensor(kInput).shape();
  const int64_t pixels = PixelsOf(shape), elements = ChannelsOfGroup(call, shape) * pixels;
  const auto parameter = [&](int operand, double otherwise) {
    return call.has(operand) ? RealValues(call.tensor(operand)) : std::vector<double>(shape[1], otherwise);
  };
  const std::vector<double> weight = parameter(kWeight, 1), bias = parameter(kBias, 0);
  Tensor result(call.result());
  const double scale = call.tensor(kInput).type().quant->scale();
  const float result_scale = result.type().quant->scale();
  Activation activation = ParseActivation(call.GetString("activation")).value();
  if (activation.function) activation.function = elementwise::ForCodes(*activation.function);
  const Rounding round = RoundingOf(result.type(), activation);
  const double n = static_cast<double>(elements);
  for (int64_t group = 0; group < result.num_elements(); group += elements) {
    int64_t sum = 0, squares = 0;
    for (int64_t i = group; i < group + elements; ++i) {
      const int64_t value = static_cast<int64_t>(x[i]);
      sum += value;
      squares += value * value;
    }
    const double mean = static_cast<double>(sum) / n;
    const double variance = static_cast<double>(elements * squares - sum * sum) / (n * n);
    const double factor = 1 / std::sqrt(variance * (scale * scale) + call.GetFloat("eps"));
    for (int64_t i = group; i < group + elements; ++i) {
      const int64_t channel = i / pixels % shape[1];
      const double gain = factor * scale * weight[channel];
      const float offset = static_cast<float>(bias[channel] - mean * gain);
      const float y = activation(std::fma(static_cast<float>(x[i]), static_cast<float>(gain), offset));
      const float steps = y / result_scale;
      result.Set(i, round(std::isnan(steps) ? 0 : steps));
    }
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const char* op : {"group_norm", "instance_norm"}) {
    const Part norm(layer_norm::Register, op);
    ir::OpSchema schema;
    schema.name = absl::StrCat("int8.", op);
    schema.quantized_form_of = op;
    schema.operands = norm.schema().operands;
    schema.attributes = norm.Attributes();
    for (ir::AttributeSpec& attribute : OutputAttributes()) schema.attributes.push_back(std::move(attribute));
    schema.itemwise = true;
    schema.module_form = true;
    schema.infer = [norm](const ir::InferCall& call) { return Infer(norm, call); };
    schema.evaluate = Evaluate;
    schema.operations_per_element = kQuantizeOperations;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::int8::group_norm

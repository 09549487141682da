#include "ir/ops/linear/linear.h"

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::linear {
namespace {

absl::StatusOr<ir::Type> InferLinear(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  const DType dtype = call.tensor(kInput).dtype;
  RETURN_IF_ERROR(CheckParameterDType(call, kWeight, dtype));
  if (call.has(kBias)) RETURN_IF_ERROR(CheckParameterDType(call, kBias, dtype));
  ASSIGN_OR_RETURN(Shape shape, CheckLinear(call));
  return ResultType(dtype, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateLinear(const ir::EvaluateCall& call) {
  const Tensor& weight = call.tensor(kWeight);
  const int64_t out = weight.dim(0), in = weight.dim(1);
  const Tensor dequantized = weight.type().quant ? Dequantized(weight) : Tensor();
  const Tensor& w = weight.type().quant ? dequantized : weight;
  const std::vector<double> x = RealValues(call.tensor(kInput));
  const std::vector<double> bias = call.has(kBias) ? RealValues(call.tensor(kBias)) : std::vector<double>(out, 0.0);
  const Activation activation = ParseActivation(call.GetString("activation")).value();
  Tensor result(call.result());
  const int64_t rows = out == 0 ? 0 : result.num_elements() / out;
  std::vector<double> column(in);  // One output's weights: the whole matrix as double could be large.
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) column[i] = w.At(o * in + i);
    for (int64_t row = 0; row < rows; ++row) {
      double sum = bias[o];
      for (int64_t i = 0; i < in; ++i) sum += x[row * in + i] * column[i];
      result.Set(row * out + o, activation(sum));
    }
  }
  return One(std::move(result));
}

}  // namespace

ir::OpSchema LinearSchema() {
  ir::OpSchema schema;
  schema.itemwise = true;
  schema.operands = {{"input"},
                     {"weight", /*optional=*/false, /*parameter=*/true, /*variadic=*/false, /*channel_axis=*/0},
                     {"bias", /*optional=*/true, /*parameter=*/true}};
  schema.attributes = {{"activation", AttributeKind::kString, "none"}};
  schema.module_form = true;
  schema.cost = [](const ir::InferCall& call, const ir::Type& result) -> ir::Cost {
    return {ir::NumElements(result) * static_cast<double>(call.tensor(kWeight).shape[1])};
  };
  return schema;
}

absl::StatusOr<Shape> CheckLinear(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckMinRank(call, kInput, 1));
  RETURN_IF_ERROR(CheckRank(call, kWeight, 2));
  RETURN_IF_ERROR(ParseActivation(call.GetString("activation")).status());
  Shape shape = call.tensor(kInput).shape;
  const Shape& weight = call.tensor(kWeight).shape;
  if (shape.back() != weight[1]) {
    return OperandError(
        call, kInput, absl::StrCat(shape.back(), " features, wanted ", weight[1], " (weight ", ToString(weight), ")"));
  }
  if (call.has(kBias)) RETURN_IF_ERROR(CheckShape(call, kBias, {weight[0]}));
  shape.back() = weight[0];
  return shape;
}

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema = LinearSchema();
  schema.name = "linear";
  schema.aliases = {"torch.nn.functional.linear"};
  schema.fusable_activation = true;
  schema.infer = InferLinear;
  schema.evaluate = EvaluateLinear;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::linear

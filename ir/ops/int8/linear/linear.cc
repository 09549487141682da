#include "ir/ops/int8/linear/linear.h"

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"
#include "ir/ops/linear/linear.h"

namespace fuselage::ops::int8::linear {
namespace {

constexpr int kInputScale = ops::linear::kBias + 1;

// Whether a call may have scales of rows: input_scale.
absl::Status CheckRowScales(const ir::InferCall& call) {
  const TensorType& input = call.tensor(ops::linear::kInput);
  if (input.dtype != DType::kI8 || input.quant) {
    return OperandError(call, ops::linear::kInput, "wanted i8 without parameters, beside scales");
  }
  RETURN_IF_ERROR(CheckFloat(call, kInputScale));
  Shape wanted = input.shape;
  wanted.back() = 1;
  RETURN_IF_ERROR(CheckShape(call, kInputScale, wanted));
  if (call.has(ops::linear::kBias)) RETURN_IF_ERROR(CheckFloat(call, ops::linear::kBias));
  if (call.GetDType("out_dtype") != DType::kF32) return AttributeError(call, "out_dtype", "f32, beside scales");
  return absl::OkStatus();
}

absl::StatusOr<ir::Type> InferLinear(const ir::InferCall& call) {
  if (!call.has(kInputScale)) RETURN_IF_ERROR(CheckCodes(call, ops::linear::kInput));
  ASSIGN_OR_RETURN(Shape shape, ops::linear::CheckLinear(call));
  RETURN_IF_ERROR(CheckWeightAndBias(call));
  if (call.has(kInputScale)) RETURN_IF_ERROR(CheckRowScales(call));
  return OutputType(call, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateLinear(const ir::EvaluateCall& call) {
  const Tensor& weight = call.tensor(ops::linear::kWeight);
  const int64_t out = weight.dim(0), in = weight.dim(1);
  const std::vector<double> x = Centered(call.tensor(ops::linear::kInput));
  std::vector<double> sums(call.result().num_elements(), 0.0);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double* row = x.data() + static_cast<int64_t>(i) / out * in;
    const int8_t* w = weight.data<int8_t>() + static_cast<int64_t>(i) % out * in;
    for (int64_t k = 0; k < in; ++k) sums[i] += row[k] * w[k];
  }
  ASSIGN_OR_RETURN(Tensor result, Requantized(call, sums, out));
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema = ops::linear::LinearSchema();
  schema.name = "int8.linear";
  schema.quantized_form_of = "linear";
  schema.operands.push_back({"input_scale", /*optional=*/true});
  schema.float_result = true;
  for (ir::AttributeSpec& attribute : OutputAttributes()) schema.attributes.push_back(std::move(attribute));
  schema.infer = InferLinear;
  schema.evaluate = EvaluateLinear;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::linear

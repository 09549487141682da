#include "ir/ops/int8/linear_groups/linear_groups.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/mxfp4.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/linear/linear.h"

namespace fuselage::ops::int8::linear_groups {
namespace {

enum Operand { kInput, kWeight, kWeightScale, kInputScale, kBias };

constexpr int64_t kMxfp4Group = 32;

bool IsMxfp4(const TensorType& weight) { return weight.dtype == DType::kU8; }

absl::StatusOr<ir::Type> InferLinear(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckNoCodes(call, kInput));
  RETURN_IF_ERROR(CheckDType(call, kInput, DType::kI8));
  RETURN_IF_ERROR(CheckNoCodes(call, kWeight));
  const bool is_mxfp4 = IsMxfp4(call.tensor(kWeight));
  if (!is_mxfp4) RETURN_IF_ERROR(CheckDType(call, kWeight, DType::kI8));
  const int64_t group = call.GetInt("group_size");
  if (group <= 0 || (is_mxfp4 && group != kMxfp4Group)) {
    return AttributeError(call, "group_size", is_mxfp4 ? "32 for MXFP4" : "a size > 0");
  }
  RETURN_IF_ERROR(CheckMinRank(call, kInput, 1));
  RETURN_IF_ERROR(CheckRank(call, kWeight, 2));
  RETURN_IF_ERROR(ParseActivation(call.GetString("activation")).status());
  const Shape& weight = call.tensor(kWeight).shape;
  Shape shape = call.tensor(kInput).shape;
  shape.back() = weight[1];
  RETURN_IF_ERROR(CheckShape(call, kInput, shape));
  RETURN_IF_ERROR(CheckDType(call, kWeightScale, is_mxfp4 ? DType::kU8 : DType::kF32));
  RETURN_IF_ERROR(CheckShape(call, kWeightScale, {weight[0], weight[1] / group + (weight[1] % group != 0)}));
  RETURN_IF_ERROR(CheckDType(call, kInputScale, DType::kF32));
  shape.back() = 1;
  RETURN_IF_ERROR(CheckShape(call, kInputScale, shape));
  if (call.has(kBias)) {
    RETURN_IF_ERROR(CheckDType(call, kBias, DType::kF32));
    RETURN_IF_ERROR(CheckShape(call, kBias, {weight[0]}));
  }
  shape.back() = weight[0];
  return ResultType(DType::kF32, std::move(shape));
}

// An integer, and the factor of an integer's group.
double CodeOf(const Tensor& weight, int64_t i) {
  if (!IsMxfp4(weight.type())) return weight.data<int8_t>()[i];
  return 2 * mxfp4::FromE2M1(weight.data<uint8_t>()[i] & 15);
}
float FactorOf(const Tensor& scale, int64_t i) {
  if (scale.dtype() == DType::kF32) return scale.data<float>()[i];
  return static_cast<float>(mxfp4::FromE8M0(scale.data<uint8_t>()[i]) / 2);
}

absl::Status CheckScale(const Tensor& scale) {
  for (int64_t i = 0; i < scale.num_elements(); ++i) {
    const bool is_float = scale.dtype() == DType::kF32;
    const double value = scale.At(i);
    if (is_float ? std::isfinite(value) : value >= 2 && value <= 254) continue;
    return absl::FailedPreconditionError(absl::StrCat("output channel ", i / scale.dim(1), ": weight_scale is ", value,
                                                      ", wanted ", is_float ? "a finite one" : "one in [2, 254]"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> EvaluateLinear(const ir::EvaluateCall& call) {
  const Tensor &x = call.tensor(kInput), &weight = call.tensor(kWeight), &scale = call.tensor(kWeightScale);
  const int64_t out = weight.dim(0), in = weight.dim(1), groups = scale.dim(1), group = call.GetInt("group_size");
  RETURN_IF_ERROR(CheckScale(scale));
  const Activation activation = ParseActivation(call.GetString("activation")).value();
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int64_t row = i / out, channel = i % out;
    float t = 0;
    for (int64_t g = 0; g < groups; ++g) {
      double sum = 0;
      for (int64_t k = g * group; k < std::min(in, (g + 1) * group); ++k) {
        sum += x.data<int8_t>()[row * in + k] * CodeOf(weight, channel * in + k);
      }
      t = std::fma(static_cast<float>(sum), FactorOf(scale, channel * groups + g), t);
    }
    const float bias = call.has(kBias) ? call.tensor(kBias).data<float>()[channel] : 0;
    result.data<float>()[i] = activation(std::fma(t, call.tensor(kInputScale).data<float>()[row], bias));
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema = ops::linear::LinearSchema();
  schema.name = "int8.linear_groups";
  schema.operands = {{"input"},
                     {"weight", /*optional=*/false, /*parameter=*/true},
                     {"weight_scale", /*optional=*/false, /*parameter=*/true},
                     {"input_scale"},
                     {"bias", /*optional=*/true, /*parameter=*/true}};
  schema.attributes.push_back({"group_size", AttributeKind::kInt, kMxfp4Group});
  schema.float_result = true;
  schema.infer = InferLinear;
  schema.evaluate = EvaluateLinear;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::linear_groups

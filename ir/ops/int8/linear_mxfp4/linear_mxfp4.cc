#include "ir/ops/int8/linear_mxfp4/linear_mxfp4.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/mxfp4.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/linear/linear.h"

namespace fuselage::ops::int8::linear_mxfp4 {
namespace {

enum Operand { kInput, kWeight, kWeightScale, kInputScale, kBias };

constexpr int64_t kGroup = 32;

absl::StatusOr<ir::Type> InferLinear(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckNoCodes(call, kInput));
  RETURN_IF_ERROR(CheckDType(call, kInput, DType::kI8));
  RETURN_IF_ERROR(CheckNoCodes(call, kWeight));
  RETURN_IF_ERROR(CheckDType(call, kWeight, DType::kU8));
  RETURN_IF_ERROR(CheckMinRank(call, kInput, 1));
  RETURN_IF_ERROR(CheckRank(call, kWeight, 2));
  RETURN_IF_ERROR(ParseActivation(call.GetString("activation")).status());
  const Shape& weight = call.tensor(kWeight).shape;
  Shape shape = call.tensor(kInput).shape;
  shape.back() = weight[1];
  RETURN_IF_ERROR(CheckShape(call, kInput, shape));
  RETURN_IF_ERROR(CheckDType(call, kWeightScale, DType::kU8));
  RETURN_IF_ERROR(CheckShape(call, kWeightScale, {weight[0], weight[1] / kGroup + (weight[1] % kGroup != 0)}));
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

absl::StatusOr<std::vector<Tensor>> EvaluateLinear(const ir::EvaluateCall& call) {
  const Tensor &x = call.tensor(kInput), &weight = call.tensor(kWeight), &scale = call.tensor(kWeightScale);
  const int64_t out = weight.dim(0), in = weight.dim(1), groups = scale.dim(1);
  for (int64_t i = 0; i < scale.num_elements(); ++i) {
    const int code = scale.data<uint8_t>()[i];
    if (code >= 2 && code <= 254) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("output channel ", i / groups, ": weight_scale is ", code, ", wanted one in [2, 254]"));
  }
  const Activation activation = ParseActivation(call.GetString("activation")).value();
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int64_t row = i / out, channel = i % out;
    float t = 0;
    for (int64_t g = 0; g < groups; ++g) {
      double sum = 0;
      for (int64_t k = g * kGroup; k < std::min(in, (g + 1) * kGroup); ++k) {
        sum += x.data<int8_t>()[row * in + k] *
               (2 * mxfp4::FromE2M1(weight.data<uint8_t>()[channel * in + k] & 15));
      }
      const double half = mxfp4::FromE8M0(scale.data<uint8_t>()[channel * groups + g]) / 2;
      t = std::fma(static_cast<float>(sum), static_cast<float>(half), t);
    }
    const float bias = call.has(kBias) ? call.tensor(kBias).data<float>()[channel] : 0;
    result.data<float>()[i] = activation(std::fma(t, call.tensor(kInputScale).data<float>()[row], bias));
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema = ops::linear::LinearSchema();
  schema.name = "int8.linear_mxfp4";
  schema.operands = {{"input"},
                     {"weight", /*optional=*/false, /*parameter=*/true},
                     {"weight_scale", /*optional=*/false, /*parameter=*/true},
                     {"input_scale"},
                     {"bias", /*optional=*/true, /*parameter=*/true}};
  schema.float_result = true;
  schema.infer = InferLinear;
  schema.evaluate = EvaluateLinear;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::linear_mxfp4

#include "ir/ops/cast/cast.h"

#include <cmath>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::cast {
namespace {

absl::StatusOr<ir::Type> InferTo(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckNoCodes(call, 0));
  return ResultType(call.GetDType("dtype"), call.tensor(0).shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateTo(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  const DType dtype = call.result().dtype;
  if (dtype == input.dtype()) return One(input);
  if (!IsFloat(input.dtype()) && !IsFloat(dtype)) return One(OfIntegers(call.result(), Integers(input)));
  Tensor result(call.result());
  const bool truncate = !IsFloat(dtype) && dtype != DType::kBool;
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    result.Set(i, truncate ? std::trunc(input.At(i)) : input.At(i));
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "to";
  schema.operands = {{"input"}};
  schema.attributes = {{"dtype", AttributeKind::kDType, std::nullopt}};
  schema.elementwise = true;
  schema.infer = InferTo;
  schema.evaluate = EvaluateTo;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::cast

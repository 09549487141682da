#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/selection/selection.h"

namespace fuselage::ops::selection {
namespace {

absl::StatusOr<ir::Type> InferNonzero(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckNoCodes(call, 0));
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(ir::Type positions, ResultType(DType::kI64, {input.num_elements(), input.rank()}));
  return ir::Type::Tuple({positions.tensor(), {DType::kI64, {1}, std::nullopt, Layout::kRowMajor}});
}

absl::StatusOr<std::vector<Tensor>> EvaluateNonzero(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  std::vector<Tensor> results;
  for (const TensorType& type : call.result_type->elements()) results.emplace_back(type);
  const std::vector<int64_t> strides = RowMajorStrides(input.shape());
  auto* position = results[0].data<int64_t>();
  int64_t count = 0;
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    if (input.At(i) == 0) continue;
    ++count;
    for (int axis = 0; axis < input.rank(); ++axis) *position++ = i / strides[axis] % input.dim(axis);
  }
  results[1].data<int64_t>()[0] = count;
  return results;
}

}  // namespace

void RegisterNonzero(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "nonzero";
  schema.operands = {{"input"}};
  schema.infer = InferNonzero;
  schema.evaluate = EvaluateNonzero;
  registry.Register(std::move(schema));
}

void Register(ir::OpRegistry& registry) {
  RegisterNms(registry);
  RegisterNonzero(registry);
}

}  // namespace fuselage::ops::selection

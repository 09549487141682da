#include "ir/ops/expand/expand.h"

#include "absl/strings/str_cat.h"
#include "ir/batch.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::expand {
namespace {

absl::StatusOr<ir::Type> InferExpand(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  const Shape& input = call.tensor(0).shape;
  Shape shape = call.GetInts("shape");
  if (shape.size() < input.size()) {
    return AttributeError(call, "shape", absl::StrCat("at least ", input.size(), " dimensions, the input's"));
  }
  const int64_t batch = call.GetInt(ir::kBatchAttribute);
  if (batch < 0) return AttributeError(call, ir::kBatchAttribute, "a size >= 0");
  if (batch > 0 && shape.empty()) return AttributeError(call, "shape", "an axis for the batch");
  if (batch > 0) shape[0] = batch;
  const size_t lead = shape.size() - input.size();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (axis < lead) {
      if (shape[axis] < 0) return AttributeError(call, "shape", absl::StrCat("a size >= 0 of the new axis ", axis));
      continue;
    }
    const int64_t own = input[axis - lead];
    if (shape[axis] == -1) shape[axis] = own;
    if (shape[axis] < 0 || (own != 1 && shape[axis] != own)) {
      return AttributeError(call, "shape", absl::StrCat(own, " or -1 on axis ", axis, " for ", ToString(input)));
    }
  }
  return ResultType(call.tensor(0).dtype, std::move(shape), call.tensor(0).quant);
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "expand";
  schema.operands = {{"input"}};
  schema.attributes = {{"shape", AttributeKind::kInts, std::nullopt}, {ir::kBatchAttribute, AttributeKind::kInt, 0}};
  schema.view = ir::View::kSelects;
  schema.infer = InferExpand;
  schema.evaluate = [](const ir::EvaluateCall& call) -> absl::StatusOr<std::vector<Tensor>> {
    const Tensor& input = call.tensor(0);
    return One(Gather(input, call.result(), BroadcastStrides(input.shape(), call.result().shape)));
  };
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::expand

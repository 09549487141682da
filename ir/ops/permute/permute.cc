#include "ir/ops/permute/permute.h"

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::permute {
namespace {

absl::StatusOr<ir::Type> InferPermute(const ir::InferCall& call) {
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", input.rank()));
  if (static_cast<int>(axes.size()) != input.rank()) {
    return AttributeError(call, "dims", absl::StrCat("each of the ", input.rank(), " axes of ", ToString(input)));
  }
  std::optional<QuantParams> quant = input.quant;
  Shape shape;
  for (size_t k = 0; k < axes.size(); ++k) {
    shape.push_back(input.shape[axes[k]]);
    if (quant && input.quant->axis == axes[k]) quant->axis = static_cast<int>(k);
  }
  return ResultType(input.dtype, std::move(shape), std::move(quant));
}

absl::StatusOr<std::vector<Tensor>> EvaluatePermute(const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", call.tensor(0).rank()));
  const std::vector<int64_t> own = RowMajorStrides(call.tensor(0).shape());
  std::vector<int64_t> strides;
  for (int axis : axes) strides.push_back(own[axis]);
  return One(Gather(call.tensor(0), call.result(), strides));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "permute";
  schema.aliases = {"torch.permute"};
  schema.operands = {{"input"}};
  schema.attributes = {{"dims", AttributeKind::kInts, std::nullopt}};
  schema.view = true;
  schema.infer = InferPermute;
  schema.evaluate = EvaluatePermute;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::permute

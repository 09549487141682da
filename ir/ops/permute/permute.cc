#include "ir/ops/permute/permute.h"

#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::permute {
namespace {

// For each axis of the result, the input's.
using Axes = absl::StatusOr<std::vector<int>> (*)(const ir::OpCall&, const TensorType& input);

absl::StatusOr<std::vector<int>> PermuteAxes(const ir::OpCall& call, const TensorType& input) {
  ASSIGN_OR_RETURN(std::vector<int> axes, AxesOf(call, "dims", input.rank()));
  if (static_cast<int>(axes.size()) != input.rank()) {
    return AttributeError(call, "dims", absl::StrCat("each of the ", input.rank(), " axes of ", ToString(input)));
  }
  return axes;
}

absl::StatusOr<std::vector<int>> TransposeAxes(const ir::OpCall& call, const TensorType& input) {
  ASSIGN_OR_RETURN(const int a, AxisOf(call, "dim0", input.rank()));
  ASSIGN_OR_RETURN(const int b, AxisOf(call, "dim1", input.rank()));
  std::vector<int> axes(input.rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[a], axes[b]);
  return axes;
}

absl::StatusOr<ir::Type> Infer(const ir::InferCall& call, Axes axes_of) {
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const std::vector<int> axes, axes_of(call, input));
  std::optional<QuantParams> quant = input.quant;
  Shape shape;
  for (size_t k = 0; k < axes.size(); ++k) {
    shape.push_back(input.shape[axes[k]]);
    if (quant && input.quant->axis == axes[k]) quant->axis = static_cast<int>(k);
  }
  return ResultType(input.dtype, std::move(shape), std::move(quant));
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::EvaluateCall& call, Axes axes_of) {
  ASSIGN_OR_RETURN(const std::vector<int> axes, axes_of(call, call.tensor(0).type()));
  const std::vector<int64_t> own = RowMajorStrides(call.tensor(0).shape());
  std::vector<int64_t> strides;
  for (int axis : axes) strides.push_back(own[axis]);
  return One(Gather(call.tensor(0), call.result(), strides));
}

void RegisterPermutation(ir::OpRegistry& registry, const char* name, const char* alias,
                         std::vector<ir::AttributeSpec> attributes, Axes axes_of) {
  ir::OpSchema schema;
  schema.name = name;
  schema.aliases = {alias};
  schema.operands = {{"input"}};
  schema.attributes = std::move(attributes);
  schema.view = ir::View::kMoves;
  schema.infer = [axes_of](const ir::InferCall& call) { return Infer(call, axes_of); };
  schema.evaluate = [axes_of](const ir::EvaluateCall& call) { return Evaluate(call, axes_of); };
  registry.Register(std::move(schema));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  RegisterPermutation(registry, "permute", "torch.permute", {{"dims", AttributeKind::kInts, std::nullopt}},
                      PermuteAxes);
  RegisterPermutation(registry, "transpose", "torch.transpose",
                      {{"dim0", AttributeKind::kInt, std::nullopt}, {"dim1", AttributeKind::kInt, std::nullopt}},
                      TransposeAxes);
}

}  // namespace fuselage::ops::permute

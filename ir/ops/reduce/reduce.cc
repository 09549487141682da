#include "ir/ops/reduce/reduce.h"

#include <algorithm>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::reduce {
namespace {

// The mean over the axes where `kept` has 1 in place of the input's dimension.
Tensor Mean(const Tensor& input, const Shape& kept, const TensorType& result) {
  std::vector<int64_t> strides = RowMajorStrides(kept);
  int64_t count = 1;
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (kept[axis] == input.dim(axis)) continue;
    strides[axis] = 0;
    count *= input.dim(axis);
  }
  const std::vector<double> x = RealValues(input);
  std::vector<double> sums(result.num_elements(), 0.0);
  ForEachOffset(input.shape(), strides, 0, [&](int64_t i, int64_t offset) { sums[offset] += x[i]; });
  for (double& sum : sums) sum /= static_cast<double>(count);
  return OfReals(result, sums);
}

absl::StatusOr<Shape> KeptShape(const ir::OpCall& call, const Shape& input) {
  const int rank = static_cast<int>(input.size());
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", rank));
  Shape kept = input;
  if (axes.empty()) std::fill(kept.begin(), kept.end(), 1);
  for (int axis : axes) kept[axis] = 1;
  return kept;
}

absl::StatusOr<ir::Type> InferMean(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const Shape kept, KeptShape(call, input.shape));
  if (call.GetBool("keepdim")) return ResultType(input.dtype, kept);
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(call, "dims", input.rank()));
  Shape shape;
  for (int axis = 0; axis < input.rank(); ++axis) {
    const bool reduced = axes.empty() || std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!reduced) shape.push_back(input.shape[axis]);
  }
  return ResultType(input.dtype, shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateMean(const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const Shape kept, KeptShape(call, call.tensor(0).shape()));
  return One(Mean(call.tensor(0), kept, call.result()));
}

absl::StatusOr<ir::Type> InferGlobalAvgPool(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  Shape shape = call.tensor(0).shape;
  std::fill(shape.begin() + 2, shape.end(), 1);
  return ResultType(call.tensor(0).dtype, shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateGlobalAvgPool(const ir::EvaluateCall& call) {
  return One(Mean(call.tensor(0), call.result().shape, call.result()));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema mean;
  mean.name = "mean";
  mean.aliases = {"torch.mean"};
  mean.operands = {{"input"}};
  mean.attributes = {{"dims", AttributeKind::kInts, std::vector<int64_t>{}}, {"keepdim", AttributeKind::kBool, false}};
  mean.infer = InferMean;
  mean.evaluate = EvaluateMean;
  registry.Register(std::move(mean));

  ir::OpSchema pool;
  pool.name = "global_avg_pool";
  pool.operands = {{"input"}};
  pool.module_form = true;
  pool.infer = InferGlobalAvgPool;
  pool.evaluate = EvaluateGlobalAvgPool;
  registry.Register(std::move(pool));
}

}  // namespace fuselage::ops::reduce

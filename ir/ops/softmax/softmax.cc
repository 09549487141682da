#include "ir/ops/softmax/softmax.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::softmax {
namespace {

absl::StatusOr<ir::Type> InferSoftmax(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(AxisOf(call, "dim", call.tensor(0).rank()).status());
  return ResultType(call.tensor(0).dtype, call.tensor(0).shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateSoftmax(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  std::vector<double> x = RealValues(input);
  const int64_t count = input.dim(axis), stride = RowMajorStrides(input.shape())[axis];
  for (size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int64_t>(i) / stride % count != 0) continue;  // The first element of each line along the axis.
    double* line = x.data() + i;
    double largest = line[0], sum = 0;
    for (int64_t k = 1; k < count; ++k) largest = std::max(largest, line[k * stride]);
    for (int64_t k = 0; k < count; ++k) sum += line[k * stride] = std::exp(line[k * stride] - largest);
    for (int64_t k = 0; k < count; ++k) line[k * stride] /= sum;
  }
  return One(OfReals(call.result(), x));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "softmax";
  schema.aliases = {"torch.softmax", "torch.nn.functional.softmax"};
  schema.operands = {{"input"}};
  schema.attributes = {{"dim", AttributeKind::kInt, -1}};
  schema.module_form = true;
  schema.infer = InferSoftmax;
  schema.evaluate = EvaluateSoftmax;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::softmax

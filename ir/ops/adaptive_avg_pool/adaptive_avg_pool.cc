#include "ir/ops/adaptive_avg_pool/adaptive_avg_pool.h"

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::adaptive_avg_pool {
namespace {

absl::StatusOr<ir::Type> InferAdaptive(const ir::InferCall& call, int n) {
  RETURN_IF_ERROR(CheckFloat(call, 0));
  RETURN_IF_ERROR(CheckRank(call, 0, n + 2));
  RETURN_IF_ERROR(CheckInts(call, "output_size", n, 1));
  const Shape& input = call.tensor(0).shape;
  Shape shape = {input[0], input[1]};
  for (int i = 0; i < n; ++i) {
    if (input[2 + i] < 1) return OperandError(call, 0, absl::StrCat("nothing on axis ", 2 + i, ", wanted elements"));
    shape.push_back(call.GetInts("output_size")[i]);
  }
  return ResultType(call.tensor(0).dtype, std::move(shape));
}

// Pools axis `axis` of `x` alone, to `out` elements: the mean over a box is the mean of means along its axes.
std::vector<double> PoolAxis(const std::vector<double>& x, const Shape& shape, int axis, int64_t out) {
  const int64_t in = shape[axis], stride = RowMajorStrides(shape)[axis];
  const int64_t lines = static_cast<int64_t>(x.size()) / in;
  std::vector<double> y(lines * out, 0.0);
  for (int64_t line = 0; line < lines; ++line) {
    const double* from = x.data() + line / stride * stride * in + line % stride;
    double* to = y.data() + line / stride * stride * out + line % stride;
    for (int64_t i = 0; i < out; ++i) {
      const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
      for (int64_t k = begin; k < end; ++k) to[i * stride] += from[k * stride];
      to[i * stride] /= static_cast<double>(end - begin);
    }
  }
  return y;
}

absl::StatusOr<std::vector<Tensor>> EvaluateAdaptive(const ir::EvaluateCall& call) {
  std::vector<double> values = RealValues(call.tensor(0));
  Shape shape = call.tensor(0).shape();
  for (int axis = 2; axis < call.tensor(0).rank(); ++axis) {
    values = PoolAxis(values, shape, axis, call.result().shape[axis]);
    shape[axis] = call.result().shape[axis];
  }
  return One(OfReals(call.result(), values));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (int n = 1; n <= 3; ++n) {
    ir::OpSchema schema;
    schema.name = absl::StrCat("adaptive_avg_pool", n, "d");
    schema.aliases = {absl::StrCat("torch.nn.functional.", schema.name)};
    if (n == 1) schema.aliases.push_back(absl::StrCat("torch.", schema.name));
    schema.operands = {{"input"}};
    schema.attributes = {{"output_size", AttributeKind::kInts, std::nullopt}};
    schema.module_form = true;
    schema.homogeneous = true;
    schema.itemwise = true;
    schema.infer = [n](const ir::InferCall& call) { return InferAdaptive(call, n); };
    schema.evaluate = EvaluateAdaptive;
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::adaptive_avg_pool

#include "ir/ops/layer_norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::layer_norm {
namespace {

enum Operand { kInput, kWeight, kBias };

absl::StatusOr<ir::Type> InferLayerNorm(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  const TensorType& input = call.tensor(kInput);
  const Shape& normalized = call.GetInts("normalized_shape");
  if (normalized.empty() || normalized.size() > input.shape.size() ||
      !std::equal(normalized.rbegin(), normalized.rend(), input.shape.rbegin())) {
    return AttributeError(call, "normalized_shape", absl::StrCat("one or more trailing sizes of ", ToString(input)));
  }
  for (int i = kWeight; i <= kBias; ++i) {
    if (!call.has(i)) continue;
    RETURN_IF_ERROR(CheckShape(call, i, normalized));
    RETURN_IF_ERROR(CheckParameterDType(call, i, input.dtype));
  }
  const double eps = call.GetFloat("eps");
  if (!(eps >= 0 && std::isfinite(eps))) return AttributeError(call, "eps", "finite and >= 0");
  return ResultType(input.dtype, input.shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateLayerNorm(const ir::EvaluateCall& call) {
  std::vector<double> x = RealValues(call.tensor(kInput));
  int64_t columns = 1;
  for (int64_t size : call.GetInts("normalized_shape")) columns *= size;
  const std::vector<double> weight =
      call.has(kWeight) ? RealValues(call.tensor(kWeight)) : std::vector<double>(columns, 1.0);
  const std::vector<double> bias = call.has(kBias) ? RealValues(call.tensor(kBias)) : std::vector<double>(columns, 0.0);
  for (size_t begin = 0; begin < x.size(); begin += columns) {
    double* row = x.data() + begin;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < columns; ++i) mean += row[i] / static_cast<double>(columns);
    for (int64_t i = 0; i < columns; ++i) {
      variance += (row[i] - mean) * (row[i] - mean) / static_cast<double>(columns);
    }
    const double factor = 1 / std::sqrt(variance + call.GetFloat("eps"));
    for (int64_t i = 0; i < columns; ++i) row[i] = (row[i] - mean) * factor * weight[i] + bias[i];
  }
  return One(OfReals(call.result(), x));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "layer_norm";
  schema.aliases = {"torch.layer_norm", "torch.nn.functional.layer_norm"};
  schema.operands = {
      {"input"}, {"weight", /*optional=*/true, /*parameter=*/true}, {"bias", /*optional=*/true, /*parameter=*/true}};
  schema.attributes = {{"normalized_shape", AttributeKind::kInts, std::nullopt}, {"eps", AttributeKind::kFloat, 1e-5}};
  schema.module_form = true;
  schema.infer = InferLayerNorm;
  schema.evaluate = EvaluateLayerNorm;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::layer_norm

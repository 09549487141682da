#include "ir/ops/batch_norm/batch_norm.h"

#include <cmath>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::batch_norm {
namespace {

enum Operand { kInput, kWeight, kBias, kRunningMean, kRunningVar };

absl::StatusOr<ir::Type> InferBatchNorm(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  RETURN_IF_ERROR(CheckMinRank(call, kInput, 2));
  const TensorType& input = call.tensor(kInput);
  for (int i = kWeight; i <= kRunningVar; ++i) {
    if (!call.has(i)) continue;
    RETURN_IF_ERROR(CheckShape(call, i, {input.shape[1]}));
    RETURN_IF_ERROR(CheckParameterDType(call, i, input.dtype));
  }
  if (call.has(kRunningMean) != call.has(kRunningVar)) {
    return absl::InvalidArgumentError("running_mean without running_var, or the other way round: wanted both or none");
  }
  const double eps = call.GetFloat("eps");
  if (!(eps >= 0 && std::isfinite(eps))) return AttributeError(call, "eps", "finite and >= 0");
  return ResultType(input.dtype, input.shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateBatchNorm(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(kInput);
  const int64_t channels = input.dim(1);
  int64_t inner = 1;
  for (int axis = 2; axis < input.rank(); ++axis) inner *= input.dim(axis);
  std::vector<double> x = RealValues(input);
  const auto channel = [&](size_t i) { return i / inner % channels; };

  std::vector<double> mean(channels, 0.0), variance(channels, 0.0);
  if (call.has(kRunningMean) && !call.GetBool("training")) {
    mean = RealValues(call.tensor(kRunningMean));
    variance = RealValues(call.tensor(kRunningVar));
  } else {
    const double count = static_cast<double>(input.dim(0) * inner);
    for (size_t i = 0; i < x.size(); ++i) mean[channel(i)] += x[i] / count;
    for (size_t i = 0; i < x.size(); ++i) {
      const double distance = x[i] - mean[channel(i)];
      variance[channel(i)] += distance * distance / count;
    }
  }

  std::vector<double> weight(channels, 1.0), bias(channels, 0.0);
  if (call.has(kWeight)) weight = RealValues(call.tensor(kWeight));
  if (call.has(kBias)) bias = RealValues(call.tensor(kBias));
  for (int64_t c = 0; c < channels; ++c) weight[c] /= std::sqrt(variance[c] + call.GetFloat("eps"));
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = channel(i);
    x[i] = (x[i] - mean[c]) * weight[c] + bias[c];
  }
  return One(OfReals(call.result(), x));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "batch_norm";
  schema.operands = {{"input"}};
  for (const char* parameter : {"weight", "bias", "running_mean", "running_var"}) {
    schema.operands.push_back({parameter, /*optional=*/true, /*parameter=*/true});
  }
  schema.attributes = {{"eps", AttributeKind::kFloat, 1e-5}, {"training", AttributeKind::kBool, false}};
  schema.module_form = true;
  schema.infer = InferBatchNorm;
  schema.evaluate = EvaluateBatchNorm;
  schema.operations_per_element = 2;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::batch_norm

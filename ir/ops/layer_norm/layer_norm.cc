#include "ir/ops/layer_norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::layer_norm {
namespace {

enum Operand { kInput, kWeight, kBias };

absl::StatusOr<ir::Type> InferParameters(const ir::InferCall& call, const Shape& parameters) {
  const TensorType& input = call.tensor(kInput);
  for (int i = kWeight; i < call.size(); ++i) {
    if (!call.has(i)) continue;
    RETURN_IF_ERROR(CheckShape(call, i, parameters));
    RETURN_IF_ERROR(CheckParameterDType(call, i, input.dtype));
  }
  const double eps = call.GetFloat("eps");
  if (!(eps >= 0 && std::isfinite(eps))) return AttributeError(call, "eps", "finite and >= 0");
  return ResultType(input.dtype, input.shape);
}

// layer_norm, rms_norm: parameters by the trailing axes.
absl::StatusOr<ir::Type> InferTrailing(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  const TensorType& input = call.tensor(kInput);
  const Shape& normalized = call.GetInts("normalized_shape");
  if (normalized.empty() || normalized.size() > input.shape.size() ||
      !std::equal(normalized.rbegin(), normalized.rend(), input.shape.rbegin())) {
    return AttributeError(call, "normalized_shape", absl::StrCat("one or more trailing sizes of ", ToString(input)));
  }
  return InferParameters(call, normalized);
}

// group_norm, instance_norm: parameters by channel.
absl::StatusOr<ir::Type> InferChannels(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kInput));
  RETURN_IF_ERROR(CheckMinRank(call, kInput, 2));
  const int64_t channels = call.tensor(kInput).shape[1];
  if (call.schema().FindAttributeOrNull("num_groups") != nullptr) {
    const int64_t groups = call.GetInt("num_groups");
    if (groups < 1 || channels % groups != 0) {
      return AttributeError(call, "num_groups", absl::StrCat("a divisor of the ", channels, " channels"));
    }
  }
  RETURN_IF_ERROR(ParseActivation(call.GetString("activation")).status());
  return InferParameters(call, {channels});
}

// Rows of `columns` elements have statistics of their own. Element i has the parameters at i / inner, modulo their
// number.
struct Rows {
  int64_t columns, inner;
  bool centered;  // Otherwise the mean stays, and the variance is the mean square.
  Activation activation = {};
};

// Sixteen sums, each of every sixteenth term, whose upper half is added to the lower until one is left: the order of
// the kernels (kernels/norm), to the bit.
template <typename Term>
double SumOf(int64_t count, Term term) {
  std::vector<double> sums(16, 0.0);
  for (int64_t i = 0; i < count; ++i) sums[i % 16] += term(i);
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

absl::StatusOr<std::vector<Tensor>> Normalize(const ir::EvaluateCall& call, const Rows& rows) {
  std::vector<double> x = RealValues(call.tensor(kInput));
  const auto parameter = [&](int operand, double otherwise) {
    return call.has(operand) ? RealValues(call.tensor(operand)) : std::vector<double>(1, otherwise);
  };
  const std::vector<double> weight = parameter(kWeight, 1), bias = parameter(kBias, 0);
  // What is behind the sums is of the result's type: a double's operation rounded to float32 is float32's.
  const bool is_f32 = call.result().dtype == DType::kF32;
  const auto rounded = [is_f32](double v) { return is_f32 ? static_cast<float>(v) : v; };
  for (size_t begin = 0; begin < x.size(); begin += rows.columns) {
    double* row = x.data() + begin;
    const double count = static_cast<double>(rows.columns);
    const double mean = rows.centered ? SumOf(rows.columns, [&](int64_t i) { return row[i]; }) / count : 0;
    const double squares = SumOf(rows.columns, [&](int64_t i) { return (row[i] - mean) * (row[i] - mean); });
    const double centre = rounded(mean), factor = rounded(1 / std::sqrt(squares / count + call.GetFloat("eps")));
    for (int64_t i = 0; i < rows.columns; ++i) {
      const size_t at = (begin + i) / rows.inner;
      const double y =
          rounded(rounded(rounded(row[i] - centre) * factor) * weight[at % weight.size()]) + bias[at % bias.size()];
      row[i] = is_f32 ? rows.activation(static_cast<float>(y)) : rows.activation(y);
    }
  }
  return One(OfReals(call.result(), x));
}

absl::StatusOr<std::vector<Tensor>> EvaluateTrailing(const ir::EvaluateCall& call, bool centered) {
  int64_t columns = 1;
  for (int64_t size : call.GetInts("normalized_shape")) columns *= size;
  return Normalize(call, {columns, 1, centered});
}

absl::StatusOr<std::vector<Tensor>> EvaluateChannels(const ir::EvaluateCall& call) {
  const Shape& shape = call.tensor(kInput).shape();
  int64_t inner = 1;
  for (size_t axis = 2; axis < shape.size(); ++axis) inner *= shape[axis];
  const bool grouped = call.schema().FindAttributeOrNull("num_groups") != nullptr;
  return Normalize(call, {(grouped ? shape[1] / call.GetInt("num_groups") : 1) * inner, inner, true,
                          ParseActivation(call.GetString("activation")).value()});
}

ir::OpSchema Schema(const char* name, std::vector<std::string> aliases, bool has_bias) {
  ir::OpSchema schema;
  schema.name = name;
  schema.aliases = std::move(aliases);
  schema.operands = {{"input"}, {"weight", /*optional=*/true, /*parameter=*/true}};
  if (has_bias) schema.operands.push_back({"bias", /*optional=*/true, /*parameter=*/true});
  schema.attributes = {{"eps", AttributeKind::kFloat, 1e-5}};
  schema.module_form = true;
  return schema;
}

void RegisterChannels(ir::OpSchema schema, ir::OpRegistry& registry) {
  schema.attributes.push_back({"activation", AttributeKind::kString, "none"});
  schema.fusable_activation = true;
  schema.infer = InferChannels;
  schema.evaluate = EvaluateChannels;
  registry.Register(std::move(schema));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const bool centered : {true, false}) {
    ir::OpSchema schema =
        centered ? Schema("layer_norm", {"torch.layer_norm", "torch.nn.functional.layer_norm"}, /*has_bias=*/true)
                 : Schema("rms_norm", {"torch.rms_norm", "torch.nn.functional.rms_norm"}, /*has_bias=*/false);
    schema.attributes.insert(schema.attributes.begin(), {"normalized_shape", AttributeKind::kInts, std::nullopt});
    schema.infer = InferTrailing;
    schema.evaluate = [centered](const ir::EvaluateCall& call) { return EvaluateTrailing(call, centered); };
    registry.Register(std::move(schema));
  }
  ir::OpSchema group = Schema("group_norm", {"torch.group_norm", "torch.nn.functional.group_norm"}, /*has_bias=*/true);
  group.attributes.insert(group.attributes.begin(), {"num_groups", AttributeKind::kInt, std::nullopt});
  RegisterChannels(std::move(group), registry);
  RegisterChannels(Schema("instance_norm", {"torch.nn.functional.instance_norm"}, /*has_bias=*/true), registry);
}

}  // namespace fuselage::ops::layer_norm

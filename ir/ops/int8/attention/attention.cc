#include "ir/ops/int8/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/attention_weight.h"
#include "ir/base/elementwise_math.h"
#include "ir/ops/attention/attention.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"

namespace fuselage::ops::int8::attention {
namespace {

enum Operand { kQuery, kKey, kValue, kMask };

constexpr float kNever = -std::numeric_limits<float>::infinity();
// Codes less their zero points, and weights, are at most 255.
constexpr int64_t kMostInSum = ((int64_t{1} << 31) - 1) / (255 * 255);

absl::StatusOr<ir::Type> InferAttention(const ir::InferCall& call) {
  for (const int i : {kQuery, kKey, kValue}) RETURN_IF_ERROR(CheckCodes(call, i));
  ASSIGN_OR_RETURN(Shape shape, ops::attention::CheckAttention(call, DType::kF32));
  return OutputType(call, std::move(shape));
}

// Scores to the codes of weights, whose sum it returns.
int64_t Softmax(const std::vector<float>& scores, std::vector<int64_t>& weights) {
  float most = kNever;
  for (const float s : scores) most = s > most ? s : most;
  if (most == kNever) most = 0;
  int64_t sum = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    sum += weights[j] = AttentionWeight<OneLane>(scores[j] - most) - kRoundingBits;
  }
  return sum;
}

absl::StatusOr<std::vector<Tensor>> EvaluateAttention(const ir::EvaluateCall& call) {
  const Tensor &query = call.tensor(kQuery), &key = call.tensor(kKey), &value = call.tensor(kValue);
  const auto scale = [](const Tensor& codes) { return codes.type().quant->scale(); };
  for (const int64_t count : {key.shape().back(), key.dim(key.rank() - 2)}) {
    if (count <= kMostInSum) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("sums of ", count, " products may overflow 32 bits, wanted at most ", kMostInSum));
  }
  const float attribute = static_cast<float>(call.GetFloat("scale")),
              cap = static_cast<float>(call.GetFloat("softcap"));
  ASSIGN_OR_RETURN(const float score_scale, Multiplier(scale(query) * scale(key) * attribute, 1,
                                                       "the product of the scales of query, key and scores"));
  Tensor result(call.result());
  const bool float_result = result.dtype() == DType::kF32;
  ASSIGN_OR_RETURN(const float value_scale, Multiplier(scale(value), float_result ? 1 : result.type().quant->scale(),
                                                       "the value's scale over the result's"));
  const Rounding round = float_result ? Rounding{} : RoundingOf(result.type());
  const std::vector<double> q = Centered(query), k = Centered(key), v = Centered(value);
  const int64_t depth = query.shape().back(), width = value.shape().back(), keys = key.dim(key.rank() - 2);
  const int64_t rows = width == 0 ? 0 : result.num_elements() / width;
  Shape scores_shape = query.shape();
  scores_shape.back() = keys;
  const std::vector<double> mask = ops::attention::MaskOf(call, scores_shape);
  const int64_t groups = rows == 0 || keys == 0 ? 1 : value.num_elements() / (keys * width);
  std::vector<float> scores(keys);
  std::vector<int64_t> weights(keys);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t first = i / (rows / groups) * keys;
    for (int64_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < depth; ++d) sum += q[i * depth + d] * k[(first + j) * depth + d];
      float s = static_cast<float>(sum) * score_scale;
      if (cap != 0) s = cap * elementwise::Tanh(s / cap);
      scores[j] = s + static_cast<float>(mask[i * keys + j]);
    }
    const int64_t sum = Softmax(scores, weights);
    const float multiplier = sum == 0 ? 0.0f : value_scale / static_cast<float>(sum);
    for (int64_t e = 0; e < width; ++e) {
      double mixed = 0;
      for (int64_t j = 0; j < keys; ++j) mixed += static_cast<double>(weights[j]) * v[(first + j) * width + e];
      const float y = static_cast<float>(mixed) * multiplier;
      result.Set(i * width + e, float_result ? y : round(y));
    }
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "int8.attention";
  schema.quantized_form_of = "scaled_dot_product_attention";
  schema.operands = ops::attention::AttentionOperands();
  schema.attributes = ops::attention::AttentionAttributes();
  for (ir::AttributeSpec& attribute : OutputAttributes()) schema.attributes.push_back(std::move(attribute));
  schema.module_form = true;
  schema.float_result = true;
  schema.infer = InferAttention;
  schema.evaluate = EvaluateAttention;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::attention

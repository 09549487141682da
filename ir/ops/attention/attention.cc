#include "ir/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/cost.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::attention {
namespace {

enum Operand { kQuery, kKey, kValue, kMask };

Shape WithLast(Shape shape, int64_t size) {
  shape.back() = size;
  return shape;
}

// Each key's head serves whole heads of queries, and all else that is shared is alike.
bool Fit(const Shape& q, const Shape& k, const Shape& v) {
  const size_t rank = q.size();
  if (k.size() != rank || v.size() != rank || k.back() != q.back()) return false;
  if (!std::equal(k.begin(), k.end() - 1, v.begin())) return false;
  if (rank == 2) return true;
  const size_t heads = rank - 3;
  if (!std::equal(q.begin(), q.begin() + heads, k.begin())) return false;
  return k[heads] == 0 ? q[heads] == 0 : q[heads] % k[heads] == 0;
}

absl::StatusOr<ir::Type> InferAttention(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckFloat(call, kQuery));
  const DType dtype = call.tensor(kQuery).dtype;
  RETURN_IF_ERROR(CheckDType(call, kKey, dtype));
  RETURN_IF_ERROR(CheckDType(call, kValue, dtype));
  ASSIGN_OR_RETURN(Shape shape, CheckAttention(call, dtype));
  return ResultType(dtype, std::move(shape));
}

ir::Cost CostOfAttention(const ir::InferCall& call, const ir::Type& result) {
  const Shape &q = call.tensor(kQuery).shape, &v = call.tensor(kValue).shape;
  const double queries = static_cast<double>(q[q.size() - 2]), keys = static_cast<double>(v[v.size() - 2]);
  double heads = 1, pairs = queries * keys;
  for (size_t axis = 0; axis + 2 < q.size(); ++axis) heads *= static_cast<double>(q[axis]);
  if (call.GetBool("is_causal")) {  // Query i looks at i + 1 keys, as long as there are that many.
    const double rising = std::min(queries, keys);
    pairs = rising * (rising + 1) / 2 + (queries - rising) * keys;
  }
  const double scores = heads * pairs;
  const bool capped = call.GetFloat("softcap") != 0;
  return {scores * static_cast<double>(q.back() + v.back()),
          scores * (2 + kTranscendental * (1 + capped)) + ir::NumElements(result)};
}

// Scores to weights, which sum to 1 or are all 0.
void Softmax(double* scores, int64_t count) {
  const double largest = *std::max_element(scores, scores + count);
  if (largest == -std::numeric_limits<double>::infinity()) {
    std::fill(scores, scores + count, 0.0);
    return;
  }
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += scores[j] = std::exp(scores[j] - largest);
  for (int64_t j = 0; j < count; ++j) scores[j] /= sum;
}

absl::StatusOr<std::vector<Tensor>> EvaluateAttention(const ir::EvaluateCall& call) {
  const Shape &q_shape = call.tensor(kQuery).shape(), &v_shape = call.tensor(kValue).shape();
  const std::vector<double> q = RealValues(call.tensor(kQuery)), k = RealValues(call.tensor(kKey)),
                            v = RealValues(call.tensor(kValue));
  const int64_t depth = q_shape.back(), width = v_shape.back(), keys = v_shape[v_shape.size() - 2];
  const int64_t queries = q_shape[q_shape.size() - 2];
  std::vector<double> y(call.result().num_elements(), 0.0);
  if (y.empty() || keys == 0) return One(OfReals(call.result(), y));
  const Shape scores_shape = WithLast(q_shape, keys);
  const std::vector<double> mask = MaskOf(call, scores_shape);
  const int64_t rows = static_cast<int64_t>(y.size()) / width;
  const int64_t rows_of_head = rows / (call.tensor(kValue).num_elements() / (keys * width));  // Of a key's.
  FUSELAGE_CHECK(rows_of_head % queries == 0);
  const double scale = call.GetFloat("scale"), cap = call.GetFloat("softcap");
  std::vector<double> line(keys);
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t first = i / rows_of_head * keys;
    for (int64_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (int64_t d = 0; d < depth; ++d) sum += q[i * depth + d] * k[(first + j) * depth + d];
      sum *= scale;
      if (cap != 0) sum = cap * std::tanh(sum / cap);
      line[j] = sum + mask[i * keys + j];
    }
    Softmax(line.data(), keys);
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t e = 0; e < width; ++e) y[i * width + e] += line[j] * v[(first + j) * width + e];
    }
  }
  return One(OfReals(call.result(), y));
}

}  // namespace

absl::StatusOr<Shape> CheckAttention(const ir::InferCall& call, DType mask) {
  RETURN_IF_ERROR(CheckMinRank(call, kQuery, 2));
  const TensorType &q = call.tensor(kQuery), &k = call.tensor(kKey), &v = call.tensor(kValue);
  if (!Fit(q.shape, k.shape, v.shape)) {
    return OperandError(call, kQuery,
                        absl::StrCat("with key ", ToString(k), " and value ", ToString(v),
                                     ": wanted [..., H, S, D], [..., K, T, D] and [..., K, T, E], H a multiple of K"));
  }
  if (call.GetFloat("softcap") < 0) return AttributeError(call, "softcap", "0 or more");
  if (call.has(kMask)) {
    if (call.tensor(kMask).dtype != DType::kBool) RETURN_IF_ERROR(CheckDType(call, kMask, mask));
    const Shape scores = WithLast(q.shape, k.shape[k.rank() - 2]);
    const absl::StatusOr<Shape> broadcast = BroadcastShapes(call.tensor(kMask).shape, scores);
    if (!broadcast.ok() || *broadcast != scores) {
      return OperandError(call, kMask, absl::StrCat("wanted what broadcasts to ", ToString(scores)));
    }
  }
  return WithLast(q.shape, v.shape.back());
}

std::vector<double> MaskOf(const ir::EvaluateCall& call, const Shape& scores) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const int64_t queries = scores[scores.size() - 2], keys = scores.back();
  TensorType type{DType::kF64, scores, std::nullopt, Layout::kRowMajor};
  std::vector<double> mask(type.num_elements(), 0.0);
  if (call.has(kMask)) {
    const std::vector<double> values = RealValues(call.tensor(kMask));
    const bool is_bool = call.tensor(kMask).dtype() == DType::kBool;
    ForEachOffset(scores, BroadcastStrides(call.tensor(kMask).shape(), scores), 0, [&](int64_t i, int64_t offset) {
      mask[i] = !is_bool ? values[offset] : values[offset] != 0 ? 0.0 : kNever;
    });
  }
  if (call.GetBool("is_causal")) {
    for (size_t i = 0; i < mask.size(); ++i) {
      const int64_t pair = static_cast<int64_t>(i) % (queries * keys);
      if (pair % keys > pair / keys) mask[i] = kNever;
    }
  }
  return mask;
}

std::vector<ir::OperandSpec> AttentionOperands() {
  return {{"query"}, {"key"}, {"value"}, {"mask", /*optional=*/true}};
}

std::vector<ir::AttributeSpec> AttentionAttributes() {
  return {{"scale", AttributeKind::kFloat, std::nullopt},
          {"is_causal", AttributeKind::kBool, false},
          {"softcap", AttributeKind::kFloat, 0.0}};
}

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "scaled_dot_product_attention";
  schema.aliases = {"torch.nn.functional.scaled_dot_product_attention"};
  schema.operands = AttentionOperands();
  schema.attributes = AttentionAttributes();
  schema.infer = InferAttention;
  schema.evaluate = EvaluateAttention;
  schema.cost = CostOfAttention;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::attention

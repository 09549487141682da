#include "ir/ops/topk/topk.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::topk {
namespace {

absl::StatusOr<ir::Type> InferTopk(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  const TensorType& input = call.tensor(0);
  if (input.dtype == DType::kBool) return OperandError(call, 0, "wanted numbers");
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  const int64_t k = call.GetInt("k");
  if (k < 0 || k > input.shape[axis]) {
    return AttributeError(call, "k", absl::StrCat("a number in [0, ", input.shape[axis], "]"));
  }
  TensorType values = input;
  values.shape[axis] = k;
  const TensorType positions{DType::kI64, values.shape, std::nullopt, Layout::kRowMajor};
  return ir::Type::Tuple({std::move(values), positions});
}

// `keys` order as the elements do: for a total order, NaN is above infinity.
template <typename Key>
void SelectLines(const ir::EvaluateCall& call, int axis, const std::vector<Key>& keys, std::vector<Tensor>* results) {
  const Tensor& input = call.tensor(0);
  const int64_t size = ByteSize(input.dtype()), dim = input.dim(axis), k = call.GetInt("k");
  const bool largest = call.GetBool("largest");
  const int64_t inner = RowMajorStrides(input.shape())[axis];
  const auto less = [](Key a, Key b) { return a < b || (a == a && b != b); };
  std::vector<int64_t> order(dim);
  for (int64_t line = 0; line < (dim == 0 ? 0 : input.num_elements() / dim); ++line) {
    const int64_t from = line / inner * dim * inner + line % inner, to = line / inner * k * inner + line % inner;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const Key x = keys[from + a * inner], y = keys[from + b * inner];
      return largest ? less(y, x) : less(x, y);
    });
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(static_cast<char*>((*results)[0].raw_data()) + (to + i * inner) * size,
                  static_cast<const char*>(input.raw_data()) + (from + order[i] * inner) * size, size);
      (*results)[1].data<int64_t>()[to + i * inner] = order[i];
    }
  }
}

absl::StatusOr<std::vector<Tensor>> EvaluateTopk(const ir::EvaluateCall& call) {
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", call.tensor(0).rank()));
  std::vector<Tensor> results;
  for (const TensorType& type : call.result_type->elements()) results.emplace_back(type);
  if (IsFloat(call.tensor(0).dtype())) {
    SelectLines(call, axis, ToDoubles(call.tensor(0)), &results);
  } else {
    SelectLines(call, axis, Integers(call.tensor(0)), &results);
  }
  return results;
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "topk";
  schema.aliases = {"torch.topk"};
  schema.operands = {{"input"}};
  schema.attributes = {{"k", AttributeKind::kInt, std::nullopt},
                       {"dim", AttributeKind::kInt, -1},
                       {"largest", AttributeKind::kBool, true},
                       {"sorted", AttributeKind::kBool, true}};
  schema.infer = InferTopk;
  schema.evaluate = EvaluateTopk;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::topk

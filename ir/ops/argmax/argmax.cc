#include "ir/ops/argmax/argmax.h"

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/elements.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::argmax {
namespace {

absl::StatusOr<ir::Type> InferArgmax(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckElements(call, 0, Elements::kNumbers));
  Shape shape = call.tensor(0).shape;
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", call.tensor(0).rank()));
  if (shape[axis] == 0) return OperandError(call, 0, absl::StrCat("wanted elements along axis ", axis));
  shape[axis] = 1;
  if (!call.GetBool("keepdim")) shape.erase(shape.begin() + axis);
  return ResultType(DType::kI64, std::move(shape));
}

// Does b come before a among the largest (or the smallest)? A NaN comes first.
template <typename T>
bool Precedes(T b, T a, bool largest, bool or_equals) {
  if (b != b || a != a) return b != b && (a == a || or_equals);
  return (largest ? b > a : b < a) || (or_equals && b == a);
}

template <typename T>
std::vector<int64_t> Indices(const std::vector<T>& x, int64_t count, int64_t stride, bool largest, bool last) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    if (i / stride % count != 0) continue;  // The first element of each line along the axis.
    int64_t best = 0;
    for (int64_t k = 1; k < count; ++k) {
      if (Precedes(x[i + k * stride], x[i + best * stride], largest, last)) best = k;
    }
    indices.push_back(best);
  }
  return indices;
}

absl::StatusOr<std::vector<Tensor>> EvaluateArgmax(const ir::EvaluateCall& call, bool largest) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  const int64_t count = input.dim(axis), stride = RowMajorStrides(input.shape())[axis];
  const bool last = call.GetBool("select_last_index");
  return One(OfIntegers(call.result(), IsFloat(input.dtype())
                                           ? Indices(RealValues(input), count, stride, largest, last)
                                           : Indices(Integers(input), count, stride, largest, last)));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  for (const bool largest : {true, false}) {
    ir::OpSchema schema;
    schema.name = largest ? "argmax" : "argmin";
    schema.aliases = {absl::StrCat("torch.", schema.name)};
    schema.operands = {{"input"}};
    schema.attributes = {{"dim", AttributeKind::kInt, std::nullopt},
                         {"keepdim", AttributeKind::kBool, false},
                         {"select_last_index", AttributeKind::kBool, false}};
    schema.infer = InferArgmax;
    schema.evaluate = [largest](const ir::EvaluateCall& call) { return EvaluateArgmax(call, largest); };
    registry.Register(std::move(schema));
  }
}

}  // namespace fuselage::ops::argmax

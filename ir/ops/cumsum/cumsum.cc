#include "ir/ops/cumsum/cumsum.h"

#include "ir/ops/core/checks.h"
#include "ir/ops/core/elements.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::cumsum {
namespace {

absl::StatusOr<ir::Type> InferCumsum(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckElements(call, 0, Elements::kNumbers));
  RETURN_IF_ERROR(AxisOf(call, "dim", call.tensor(0).rank()).status());
  return ResultType(call.tensor(0).dtype, call.tensor(0).shape);
}

// T: double, or uint64_t, which wraps.
template <typename T>
void Accumulate(std::vector<T>& x, int64_t count, int64_t stride, bool exclusive, bool reverse) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int64_t>(i) / stride % count != 0) continue;  // The first element of each line along the axis.
    T sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      T& element = x[i + (reverse ? count - 1 - k : k) * stride];
      const T before = sum;
      sum += element;
      element = exclusive ? before : sum;
    }
  }
}

absl::StatusOr<std::vector<Tensor>> EvaluateCumsum(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", input.rank()));
  const int64_t count = input.dim(axis), stride = RowMajorStrides(input.shape())[axis];
  const bool exclusive = call.GetBool("exclusive"), reverse = call.GetBool("reverse");
  if (IsFloat(input.dtype())) {
    std::vector<double> x = RealValues(input);
    Accumulate(x, count, stride, exclusive, reverse);
    return One(OfReals(call.result(), x));
  }
  const std::vector<int64_t> values = Integers(input);
  std::vector<uint64_t> x(values.begin(), values.end());
  Accumulate(x, count, stride, exclusive, reverse);
  return One(OfIntegers(call.result(), std::vector<int64_t>(x.begin(), x.end())));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "cumsum";
  schema.aliases = {"torch.cumsum"};
  schema.operands = {{"input"}};
  schema.attributes = {{"dim", AttributeKind::kInt, std::nullopt},
                       {"exclusive", AttributeKind::kBool, false},
                       {"reverse", AttributeKind::kBool, false}};
  schema.infer = InferCumsum;
  schema.evaluate = EvaluateCumsum;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::cumsum

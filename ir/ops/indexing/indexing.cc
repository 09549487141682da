#include "ir/ops/indexing/indexing.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::indexing {
namespace {

// --- one_hot.

absl::StatusOr<ir::Type> InferOneHot(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckIndex(call, 0));
  RETURN_IF_ERROR(CheckNoCodes(call, 1));
  RETURN_IF_ERROR(CheckShape(call, 1, {2}));
  const int64_t classes = call.GetInt("num_classes");
  if (classes < 0) return AttributeError(call, "num_classes", "a number >= 0");
  Shape shape = call.tensor(0).shape;
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", call.tensor(0).rank() + 1));
  shape.insert(shape.begin() + axis, classes);
  return ResultType(call.tensor(1).dtype, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateOneHot(const ir::EvaluateCall& call) {
  const Tensor& values = call.tensor(1);
  Tensor result(call.result());
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", result.rank()));
  const std::vector<int64_t> index = Integers(call.tensor(0));
  const int64_t classes = result.dim(axis), inner = SizeOf(result.shape(), axis + 1, result.rank());
  const int64_t size = ByteSize(values.dtype());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int64_t at = index[i / (classes * inner) * inner + i % inner];
    const bool on = (at < 0 ? at + classes : at) == i / inner % classes;
    std::memcpy(static_cast<char*>(result.raw_data()) + i * size,
                static_cast<const char*>(values.raw_data()) + on * size, size);
  }
  return One(std::move(result));
}

// --- reverse_sequence.

absl::StatusOr<ir::Type> InferReverseSequence(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckIndex(call, 1));
  const TensorType& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int batch, AxisOf(call, "batch_dim", input.rank()));
  ASSIGN_OR_RETURN(const int time, AxisOf(call, "time_dim", input.rank()));
  if (batch == time) return AttributeError(call, "time_dim", "another axis than batch_dim");
  RETURN_IF_ERROR(CheckShape(call, 1, {input.shape[batch]}));
  return ir::Type(input);
}

absl::StatusOr<std::vector<Tensor>> EvaluateReverseSequence(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const int batch, AxisOf(call, "batch_dim", input.rank()));
  ASSIGN_OR_RETURN(const int time, AxisOf(call, "time_dim", input.rank()));
  const std::vector<int64_t> lengths = Integers(call.tensor(1)), strides = RowMajorStrides(input.shape());
  for (const int64_t length : lengths) {
    if (length < 0 || length > input.dim(time)) {
      return absl::InvalidArgumentError(
          absl::StrCat("found length ", length, ", wanted one in [0, ", input.dim(time), "]"));
    }
  }
  Tensor result(call.result());
  const int64_t size = ByteSize(input.dtype());
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    const int64_t length = lengths[i / strides[batch] % input.dim(batch)], t = i / strides[time] % input.dim(time);
    const int64_t from = t < length ? i + (length - 1 - 2 * t) * strides[time] : i;
    std::memcpy(static_cast<char*>(result.raw_data()) + i * size,
                static_cast<const char*>(input.raw_data()) + from * size, size);
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  RegisterGather(registry);
  RegisterScatter(registry);

  ir::OpSchema one_hot;
  one_hot.name = "one_hot";
  one_hot.operands = {{"index"}, {"values"}};
  one_hot.attributes = {{"num_classes", AttributeKind::kInt, std::nullopt}, {"dim", AttributeKind::kInt, -1}};
  one_hot.infer = InferOneHot;
  one_hot.evaluate = EvaluateOneHot;
  registry.Register(std::move(one_hot));

  ir::OpSchema reverse;
  reverse.name = "reverse_sequence";
  reverse.operands = {{"input"}, {"lengths"}};
  reverse.attributes = {{"batch_dim", AttributeKind::kInt, 1}, {"time_dim", AttributeKind::kInt, 0}};
  reverse.view = ir::View::kMoves;
  reverse.infer = InferReverseSequence;
  reverse.evaluate = EvaluateReverseSequence;
  registry.Register(std::move(reverse));
}

}  // namespace fuselage::ops::indexing

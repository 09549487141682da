#include "frontend/onnx/fold.h"

#include <utility>

#include "ir/base/status.h"

namespace fuselage::onnx {

absl::Status FoldResult(Call& call, const std::vector<int>& operands, Computation compute) {
  std::vector<const Tensor*> now, next, next_row, no_row;
  std::vector<Value> values;
  bool depends_on_batch = false, known_at_none = true;
  for (const int i : operands) {
    const Tensor* tensor = nullptr;
    if (call.has(i)) {
      ASSIGN_OR_RETURN(tensor, call.Constant(i, Call::Batch::kFollowed));
    }
    const auto& at_next_batch = call.operand(i).at_next_batch;
    now.push_back(tensor);
    next.push_back(at_next_batch != nullptr ? &(*at_next_batch)[0] : tensor);
    depends_on_batch = depends_on_batch || at_next_batch != nullptr;
    const Value& value = call.operand(i);
    known_at_none = known_at_none && (value.follows == nullptr || value.at_no_row != nullptr);
    next_row.push_back(value.follows != nullptr ? &(*value.at_next_row)[0] : tensor);
    no_row.push_back(value.at_no_row != nullptr ? &(*value.at_no_row)[0] : tensor);
    values.push_back(value);
  }
  ASSIGN_OR_RETURN(Tensor result, compute(now));
  Value value = Builder::Constant(call.name(), std::move(result));
  ASSIGN_OR_RETURN(ir::Node * follows, Builder::FollowedBy(values));
  if (follows != nullptr) {
    absl::StatusOr<Tensor> none = absl::UnimplementedError("");
    if (known_at_none) none = compute(no_row);
    call.builder().SetAtRows(value, compute(next_row), std::move(none), follows);
  }
  if (depends_on_batch) {
    absl::StatusOr<Tensor> other = compute(next);
    if (other.ok()) call.builder().SetAtNextBatch(value, *std::move(other));
  }
  call.Set(0, std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ChargedTensor(Call& call, DType dtype, Shape shape) {
  ASSIGN_OR_RETURN(const int64_t count, CheckedNumElements(shape));
  if (count > INT64_MAX / ByteSize(dtype)) return absl::InvalidArgumentError("found a result of more than 2^63 bytes");
  RETURN_IF_ERROR(call.builder().budget().Charge(count * ByteSize(dtype), "its constant result"));
  return Tensor(dtype, std::move(shape));
}

absl::StatusOr<std::vector<int64_t>> ConstantSizes(Call& call, int i, absl::Span<const int64_t> axes) {
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, call.ConstantInts(i, Call::Batch::kFollowed));
  const auto& at_next_batch = call.operand(i).at_next_batch;
  if (at_next_batch == nullptr) return sizes;
  const Tensor& next = (*at_next_batch)[0];
  const Shape &shape = call.shape(0), &next_shape = call.builder().ShapeAtNextBatch(call.operand(0));
  bool follows = next.num_elements() == static_cast<int64_t>(sizes.size()) && sizes.size() == axes.size();
  for (size_t k = 0; follows && k < sizes.size(); ++k) {
    const double size = next.At(static_cast<int64_t>(k));
    follows = size == sizes[k] || (axes[k] >= 0 && sizes[k] == shape[axes[k]] && size == next_shape[axes[k]]);
  }
  if (follows) return sizes;
  return call.ConstantInts(i, Call::Batch::kFixed);
}

}  // namespace fuselage::onnx

// Operators that exist at import only: their results are constants.
#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "frontend/onnx/widened.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

absl::Status SetConstant(Call& call, Tensor tensor) {
  ASSIGN_OR_RETURN(Value value, call.builder().ChargedConstant(call.name(), std::move(tensor)));
  call.Set(0, std::move(value));
  return absl::OkStatus();
}

}  // namespace

absl::Status ConvertConstant(Call& call) {
  int found = 0;
  for (absl::string_view name : {"value", "value_float", "value_floats", "value_int", "value_ints", "value_string",
                                 "value_strings", "sparse_value"}) {
    found += call.HasAttribute(name);
  }
  if (found != 1) return absl::InvalidArgumentError(absl::StrCat("found ", found, " values, wanted one"));
  if (const ::onnx::TensorProto* proto = call.TensorOrNull("value"); proto != nullptr) {
    ASSIGN_OR_RETURN(Tensor tensor, ToTensor(*proto, "", &call.builder().budget()));
    Value value = Builder::Constant(call.name(), std::move(tensor));
    value.widened = FindWidenedOrNull(proto->data_type()) != nullptr;
    call.Set(0, std::move(value));
    return absl::OkStatus();
  }
  if (call.HasAttribute("value_float")) {
    return SetConstant(call, Tensor::Scalar(static_cast<float>(call.Float("value_float", 0))));
  }
  if (call.HasAttribute("value_floats")) {
    const std::vector<float> values = call.Floats("value_floats");
    return SetConstant(call, Tensor::Of<float>({static_cast<int64_t>(values.size())}, values));
  }
  if (call.HasAttribute("value_int")) return SetConstant(call, Tensor::Scalar(call.Int("value_int", 0)));
  if (call.HasAttribute("value_ints")) {
    const std::vector<int64_t> values = call.Ints("value_ints");
    return SetConstant(call, Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
  }
  return absl::UnimplementedError("found a string or sparse value, wanted a dense tensor of numbers");
}

absl::Status ConvertConstantOfShape(Call& call) {
  ASSIGN_OR_RETURN(const Shape shape, call.ConstantInts(0));
  Tensor fill = Tensor::Of<float>({1}, {0});
  if (const ::onnx::TensorProto* proto = call.TensorOrNull("value"); proto != nullptr) {
    ASSIGN_OR_RETURN(fill, ToTensor(*proto, "", &call.builder().budget()));
  }
  if (fill.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'value': found ", ToString(fill.type()), ", wanted one element"));
  }
  ASSIGN_OR_RETURN(const int64_t count, CheckedNumElements(shape));
  const int64_t size = ByteSize(fill.dtype());
  RETURN_IF_ERROR(call.builder().budget().Charge(count * size, "its constant result"));
  Tensor tensor(fill.dtype(), shape);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(static_cast<char*>(tensor.raw_data()) + i * size, fill.raw_data(), size);
  }
  call.Set(0, Builder::Constant(call.name(), std::move(tensor)));
  return absl::OkStatus();
}

// The input's shape, or from opset 15 a slice of it.
absl::Status ConvertShape(Call& call) {
  const Shape& shape = call.shape(0);
  const int64_t rank = call.rank(0);
  const auto clamp = [rank](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t start = clamp(call.Int("start", 0));
  const int64_t end = std::max(start, clamp(call.Int("end", rank)));
  const auto part = [&](const Shape& of) {
    return Tensor::Of<int64_t>({end - start}, Shape(of.begin() + start, of.begin() + end));
  };
  Builder& builder = call.builder();
  ASSIGN_OR_RETURN(Value value, builder.ChargedConstant(call.name(), part(shape)));
  RETURN_IF_ERROR(builder.budget().Charge(value.type().byte_size(), "its constant result"));
  builder.SetAtNextBatch(value, part(builder.ShapeAtNextBatch(call.operand(0))));
  call.Set(0, std::move(value));
  return absl::OkStatus();
}

namespace {

absl::StatusOr<Tensor> Gather(const Call& call, const Tensor* data, const Tensor* indices, Budget* budget) {
  if (indices->dtype() != DType::kI64 && indices->dtype() != DType::kI32) {
    return absl::InvalidArgumentError(absl::StrCat("found indices ", ToString(indices->type()), ", wanted i32 or i64"));
  }
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", 0), data->rank()));
  Shape shape(data->shape().begin(), data->shape().begin() + axis);
  shape.insert(shape.end(), indices->shape().begin(), indices->shape().end());
  shape.insert(shape.end(), data->shape().begin() + axis + 1, data->shape().end());
  ASSIGN_OR_RETURN(const int64_t count, CheckedNumElements(shape));
  const int64_t size = ByteSize(data->dtype()), rows = data->dim(axis);
  RETURN_IF_ERROR(budget->Charge(count * size, "its constant result"));
  Tensor result(data->dtype(), shape);
  int64_t outer = 1, inner = size;
  for (int i = 0; i < axis; ++i) outer *= data->dim(i);
  for (int i = axis + 1; i < data->rank(); ++i) inner *= data->dim(i);
  auto* out = static_cast<char*>(result.raw_data());
  for (int64_t o = 0; o < outer && count > 0; ++o) {
    for (int64_t i = 0; i < indices->num_elements(); ++i, out += inner) {
      int64_t index = indices->dtype() == DType::kI64 ? indices->data<int64_t>()[i] : indices->data<int32_t>()[i];
      if (index < -rows || index >= rows) {
        return absl::InvalidArgumentError(
            absl::StrCat("found index ", index, ", wanted one in [", -rows, ", ", rows, ")"));
      }
      if (index < 0) index += rows;
      std::memcpy(out, static_cast<const char*>(data->raw_data()) + (o * rows + index) * inner, inner);
    }
  }
  return result;
}

}  // namespace

// data[..., indices, ...] along an axis, on constants.
absl::Status ConvertGather(Call& call) {
  ASSIGN_OR_RETURN(const Tensor* data, call.Constant(0, Call::Batch::kFollowed));
  ASSIGN_OR_RETURN(const Tensor* indices, call.Constant(1));
  Budget* budget = &call.builder().budget();
  ASSIGN_OR_RETURN(Tensor result, Gather(call, data, indices, budget));
  Value value = Builder::Constant(call.name(), std::move(result));
  if (const auto& next = call.operand(0).at_next_batch; next != nullptr) {
    absl::StatusOr<Tensor> other = Gather(call, &(*next)[0], indices, budget);
    if (other.ok()) call.builder().SetAtNextBatch(value, *std::move(other));
  }
  call.Set(0, std::move(value));
  return absl::OkStatus();
}

}  // namespace fuselage::onnx

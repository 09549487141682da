// Operators that exist at import only: their results are constants.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/fold.h"
#include "frontend/onnx/tensors.h"
#include "frontend/onnx/widened.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx::converters::constant {
namespace {

absl::Status SetConstant(Call& call, Tensor tensor) {
  ASSIGN_OR_RETURN(Value value, call.builder().ChargedConstant(call.name(), std::move(tensor)));
  call.Set(0, std::move(value));
  return absl::OkStatus();
}

absl::Status ConvertConstant(Call& call) {
  int found = 0;
  for (absl::string_view name : {"value", "value_float", "value_floats", "value_int", "value_ints", "value_string",
                                 "value_strings", "sparse_value"}) {
    found += call.HasAttribute(name);
  }
  if (found != 1) return absl::InvalidArgumentError(absl::StrCat("found ", found, " values, wanted one"));
  if (const schema::TensorProto* proto = call.TensorOrNull("value"); proto != nullptr) {
    ASSIGN_OR_RETURN(Tensor tensor, ToTensor(*proto, {}, &call.builder().budget()));
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
  Tensor fill = Tensor::Of<float>({1}, {0});
  if (const schema::TensorProto* proto = call.TensorOrNull("value"); proto != nullptr) {
    ASSIGN_OR_RETURN(fill, ToTensor(*proto, {}, &call.builder().budget()));
  }
  if (fill.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'value': found ", ToString(fill.type()), ", wanted one element"));
  }
  return FoldResult(call, {0}, [&](absl::Span<const Tensor* const> operands) -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const std::vector<int64_t> shape, IntsOf(*operands[0], "input 0"));
    ASSIGN_OR_RETURN(Tensor tensor, ChargedTensor(call, fill.dtype(), shape));
    const int64_t size = ByteSize(fill.dtype());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      std::memcpy(static_cast<char*>(tensor.raw_data()) + i * size, fill.raw_data(), size);
    }
    return tensor;
  });
}

// start, start + delta, ... before the limit.
absl::Status ConvertRange(Call& call) {
  for (int i = 0; i < 3; ++i) {
    if (call.type(i).dtype != call.type(0).dtype || call.type(i).num_elements() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, ": found ", ToString(call.type(i)),
                                                     ", wanted one element, of one type in all inputs"));
    }
  }
  return FoldResult(call, {0, 1, 2}, [&](absl::Span<const Tensor* const> operands) -> absl::StatusOr<Tensor> {
    const double start = operands[0]->At(0), limit = operands[1]->At(0), delta = operands[2]->At(0);
    const double count = std::max(0.0, std::ceil((limit - start) / delta));
    if (!(delta != 0 && count < 1e18)) {
      return absl::InvalidArgumentError(
          absl::StrCat("found the range from ", start, " to ", limit, " by ", delta, ", wanted a finite one"));
    }
    ASSIGN_OR_RETURN(Tensor tensor, ChargedTensor(call, operands[0]->dtype(), {static_cast<int64_t>(count)}));
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, start + static_cast<double>(i) * delta);
    return tensor;
  });
}

// 1 on a diagonal, as many rows and columns as the input has; the rest is 0.
absl::Status ConvertEyeLike(Call& call) {
  DType dtype = call.type(0).dtype;
  if (call.HasAttribute("dtype")) {
    const int64_t stated = call.Int("dtype", 0);
    absl::StatusOr<DType> wanted = ToDType(stated < 0 || stated > 255 ? -1 : static_cast<int>(stated));
    if (!wanted.ok()) return Annotate(wanted.status(), "attribute 'dtype'");
    dtype = *wanted;
  }
  if (call.rank(0) != 2) return absl::InvalidArgumentError(absl::StrCat("found rank ", call.rank(0), ", wanted 2"));
  const int64_t rows = call.shape(0)[0], columns = call.shape(0)[1], diagonal = call.Int("k", 0);
  return FoldResult(call, {}, [&](absl::Span<const Tensor* const>) -> absl::StatusOr<Tensor> {
    ASSIGN_OR_RETURN(Tensor tensor, ChargedTensor(call, dtype, {rows, columns}));
    for (int64_t row = std::max<int64_t>(0, diagonal < -rows ? rows : -diagonal); row < rows; ++row) {
      if (diagonal >= columns - row) break;
      tensor.Set(row * columns + row + diagonal, 1);
    }
    return tensor;
  });
}

// What follows from the shape of operand 0 follows from how many rows it has.
absl::Status FollowRows(Call& call, Value& value, absl::FunctionRef<Tensor(const Shape&)> of_shape) {
  const Value::Rows& rows = call.operand(0).rows;
  if (rows.count == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(call.builder().budget().Charge(2 * value.type().byte_size(), "its constant result"));
  Shape next = call.shape(0), none = next;
  ++next[rows.axis];
  none[rows.axis] = 0;
  call.builder().SetAtRows(value, of_shape(next), of_shape(none), rows.count);
  return absl::OkStatus();
}

absl::Status ConvertSize(Call& call) {
  Builder& builder = call.builder();
  const auto size = [](const Shape& shape) {
    const absl::StatusOr<int64_t> count = CheckedNumElements(shape);
    return Tensor::Scalar<int64_t>(count.ok() ? *count : 0);
  };
  ASSIGN_OR_RETURN(Value value, builder.ChargedConstant(call.name(), size(call.shape(0))));
  RETURN_IF_ERROR(builder.budget().Charge(value.type().byte_size(), "its constant result"));
  builder.SetAtNextBatch(value, size(builder.ShapeAtNextBatch(call.operand(0))));
  RETURN_IF_ERROR(FollowRows(call, value, size));
  call.Set(0, std::move(value));
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
  RETURN_IF_ERROR(FollowRows(call, value, part));
  call.Set(0, std::move(value));
  return absl::OkStatus();
}

constexpr char kConstant[] =
    "sparse_value=SPARSE_TENSOR value=TENSOR value_float=FLOAT value_floats=FLOATS value_int=INT "
    "value_ints=INTS value_string=STRING value_strings=STRINGS";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Constant", 1, {0, 0}, {1, 1}, kConstant, ConvertConstant},
      {"ConstantOfShape", 9, {1, 1}, {1, 1}, "value=TENSOR", ConvertConstantOfShape},
      {"EyeLike", 9, {1, 1}, {1, 1}, "dtype=INT k=INT", ConvertEyeLike},
      {"Range", 11, {3, 3}, {1, 1}, "", ConvertRange},
      {"Shape", 1, {1, 1}, {1, 1}, "end=INT start=INT", ConvertShape},
      {"Size", 1, {1, 1}, {1, 1}, "", ConvertSize},
  });
}

}  // namespace fuselage::onnx::converters::constant

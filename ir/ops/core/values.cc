#include "ir/ops/core/values.h"

#include <cstring>

namespace fuselage::ops {
namespace {

template <typename T>
void Move(const Tensor& from, absl::Span<const int64_t> strides, int64_t start, Tensor* to) {
  const T* in = static_cast<const T*>(from.raw_data());
  T* out = static_cast<T*>(to->raw_data());
  ForEachOffset(to->shape(), strides, start, [=](int64_t i, int64_t offset) { out[i] = in[offset]; });
}

}  // namespace

std::vector<double> RealValues(const Tensor& tensor) {
  return tensor.type().quant ? ToDoubles(Dequantized(tensor)) : ToDoubles(tensor);
}

std::vector<int64_t> Integers(const Tensor& tensor) {
  if (tensor.dtype() == DType::kI64) {
    return std::vector<int64_t>(tensor.data<int64_t>(), tensor.data<int64_t>() + tensor.num_elements());
  }
  std::vector<int64_t> values(tensor.num_elements());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values[i] = static_cast<int64_t>(tensor.At(i));
  return values;
}

Tensor OfIntegers(TensorType type, absl::Span<const int64_t> values) {
  Tensor tensor(std::move(type));
  FUSELAGE_CHECK(static_cast<int64_t>(values.size()) == tensor.num_elements());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    switch (tensor.dtype()) {
      case DType::kI64: tensor.data<int64_t>()[i] = values[i]; break;
      case DType::kI32: tensor.Set(i, static_cast<int32_t>(values[i])); break;
      case DType::kI16: tensor.Set(i, static_cast<int16_t>(values[i])); break;
      case DType::kI8: tensor.Set(i, static_cast<int8_t>(values[i])); break;
      case DType::kU8: tensor.Set(i, static_cast<uint8_t>(values[i])); break;
      default: tensor.Set(i, static_cast<double>(values[i])); break;
    }
  }
  return tensor;
}

Tensor OfReals(TensorType type, absl::Span<const double> values) {
  Tensor tensor(std::move(type));
  FUSELAGE_CHECK(static_cast<int64_t>(values.size()) == tensor.num_elements());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, values[i]);
  return tensor;
}

std::vector<Tensor> One(Tensor tensor) {
  std::vector<Tensor> one;
  one.push_back(std::move(tensor));
  return one;
}

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (int axis = static_cast<int>(shape.size()) - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Tensor Gather(const Tensor& tensor, TensorType type, absl::Span<const int64_t> strides, int64_t start) {
  Tensor result(std::move(type));
  switch (ByteSize(tensor.dtype())) {
    case 1: Move<uint8_t>(tensor, strides, start, &result); break;
    case 2: Move<uint16_t>(tensor, strides, start, &result); break;
    case 4: Move<uint32_t>(tensor, strides, start, &result); break;
    default: Move<uint64_t>(tensor, strides, start, &result); break;
  }
  return result;
}

Tensor WithType(const Tensor& tensor, TensorType type) {
  Tensor result(tensor);
  result.set_type(std::move(type));
  return result;
}

}  // namespace fuselage::ops

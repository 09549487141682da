#include "ir/base/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fuselage {
namespace {

constexpr size_t kAlignment = 64;

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
uint64_t NextRandom(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

std::string ToString(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

absl::StatusOr<int64_t> CheckedNumElements(const Shape& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) return absl::InvalidArgumentError(absl::StrCat("negative dimension in shape ", ToString(shape)));
    if (dim == 0) {
      empty = true;
      continue;
    }
    if (__builtin_mul_overflow(count, dim, &count) || count > std::numeric_limits<int64_t>::max() / 8) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", ToString(shape), " overflows 64 bits"));
    }
  }
  return empty ? 0 : count;
}

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " not in [", -rank, ", ", rank, ") for a tensor of rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int64_t TensorType::num_elements() const {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

std::string ToString(const TensorType& type) {
  return absl::StrCat(DTypeName(type.dtype), ToString(type.shape), type.layout == Layout::kNhwc ? "{nhwc}" : "",
                      type.quant ? ToString(*type.quant) : "");
}

void Tensor::Free::operator()(uint8_t* data) const {
  if (owner == nullptr) ::operator delete(data, std::align_val_t{kAlignment});
}

Tensor::Tensor(TensorType type) : type_(std::move(type)) {
  absl::StatusOr<int64_t> count = CheckedNumElements(type_.shape);
  FUSELAGE_CHECK(count.ok());
  num_elements_ = *count;
  const size_t bytes = (static_cast<size_t>(byte_size()) / kAlignment + 1) * kAlignment;
  data_.reset(static_cast<uint8_t*>(::operator new(bytes, std::align_val_t{kAlignment})));
  std::memset(data_.get(), 0, bytes);
}

Tensor Tensor::Borrow(TensorType type, void* data, std::shared_ptr<const void> owner) {
  const absl::StatusOr<int64_t> count = CheckedNumElements(type.shape);
  FUSELAGE_CHECK(count.ok() && owner != nullptr && reinterpret_cast<uintptr_t>(data) % ByteSize(type.dtype) == 0);
  Tensor tensor;
  tensor.type_ = std::move(type);
  tensor.num_elements_ = *count;
  tensor.data_ = std::unique_ptr<uint8_t, Free>(static_cast<uint8_t*>(data), Free{std::move(owner)});
  return tensor;
}

Tensor::Tensor(const Tensor& other) : Tensor(other.type_) {
  if (byte_size() > 0) std::memcpy(data_.get(), other.data_.get(), byte_size());
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

void Tensor::set_type(TensorType type) {
  FUSELAGE_CHECK(type.num_elements() == num_elements_ && ByteSize(type.dtype) == ByteSize(type_.dtype));
  type_ = std::move(type);
}

double Tensor::At(int64_t i) const {
  switch (type_.dtype) {
    case DType::kBool: return data<bool>()[i];
    case DType::kU8: return data<uint8_t>()[i];
    case DType::kI8: return data<int8_t>()[i];
    case DType::kI16: return data<int16_t>()[i];
    case DType::kI32: return data<int32_t>()[i];
    case DType::kI64: return static_cast<double>(data<int64_t>()[i]);
    case DType::kF16: return ToFloat(data<Half>()[i]);
    case DType::kF32: return data<float>()[i];
    case DType::kF64: return data<double>()[i];
  }
  return 0;
}

void Tensor::Set(int64_t i, double value) {
  switch (type_.dtype) {
    case DType::kF16: data<Half>()[i] = ToHalf(static_cast<float>(value)); return;
    case DType::kF32: data<float>()[i] = static_cast<float>(value); return;
    case DType::kF64: data<double>()[i] = value; return;
    case DType::kBool: data<bool>()[i] = value != 0; return;
    default: break;
  }
  const IntegerRange range = RangeOf(type_.dtype);
  int64_t integer = 0;
  if (value >= static_cast<double>(range.max)) {
    integer = range.max;
  } else if (value <= static_cast<double>(range.min)) {
    integer = range.min;
  } else if (!std::isnan(value)) {
    integer = static_cast<int64_t>(std::nearbyint(value));
  }
  switch (type_.dtype) {
    case DType::kU8: data<uint8_t>()[i] = static_cast<uint8_t>(integer); return;
    case DType::kI8: data<int8_t>()[i] = static_cast<int8_t>(integer); return;
    case DType::kI16: data<int16_t>()[i] = static_cast<int16_t>(integer); return;
    case DType::kI32: data<int32_t>()[i] = static_cast<int32_t>(integer); return;
    default: data<int64_t>()[i] = integer; return;
  }
}

bool Tensor::SameBytes(const Tensor& other) const {
  return type_ == other.type_ && (byte_size() == 0 || std::memcmp(data_.get(), other.data_.get(), byte_size()) == 0);
}

std::vector<double> ToDoubles(const Tensor& tensor) {
  std::vector<double> values(tensor.num_elements());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) values[i] = tensor.At(i);
  return values;
}

Tensor Cast(const Tensor& tensor, DType dtype) {
  Tensor result(dtype, tensor.shape());
  if (tensor.dtype() == DType::kI64 && dtype == DType::kI64) return Tensor(tensor);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) result.Set(i, tensor.At(i));
  return result;
}

Tensor Dequantized(const Tensor& tensor) {
  if (!tensor.type().quant) return Cast(tensor, DType::kF32);
  const QuantParams& quant = *tensor.type().quant;
  Tensor result(DType::kF32, tensor.shape());
  float* out = result.data<float>();
  int64_t inner = tensor.num_elements(), channels = 1;
  if (!quant.per_tensor()) {
    channels = tensor.dim(quant.axis);
    inner = 1;
    for (int axis = quant.axis + 1; axis < tensor.rank(); ++axis) inner *= tensor.dim(axis);
  }
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const int64_t c = (i / inner) % channels;
    out[i] = static_cast<float>(tensor.At(i) - quant.zero_points[c]) * quant.scales[c];
  }
  return result;
}

Tensor SeededTensor(TensorType type, uint64_t seed) {
  Tensor tensor(std::move(type));
  uint64_t state = seed;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const uint64_t random = NextRandom(&state) >> 40;  // 24 bits
    double value;
    switch (tensor.dtype()) {
      case DType::kBool: value = random & 1; break;
      case DType::kU8: value = random & 255; break;
      case DType::kI8: value = static_cast<double>(random & 255) - 128; break;
      case DType::kI16:
      case DType::kI32:
      case DType::kI64: value = static_cast<double>(random % 201) - 100; break;
      default: value = static_cast<double>(random) / (1 << 23) - 1; break;
    }
    tensor.Set(i, value);
  }
  return tensor;
}

uint64_t Fingerprint(const Tensor& tensor) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](const void* data, int64_t bytes) {
    const uint8_t* next = static_cast<const uint8_t*>(data);
    for (; bytes >= 8; bytes -= 8, next += 8) {
      uint64_t word;
      std::memcpy(&word, next, 8);
      hash = (hash ^ word) * 0x100000001b3u;
      hash ^= hash >> 32;
    }
    for (; bytes > 0; --bytes, ++next) hash = (hash ^ *next) * 0x100000001b3u;
  };
  const std::string type = ToString(tensor.type());
  add(type.data(), type.size());
  add(tensor.raw_data(), tensor.byte_size());
  return hash;
}

}  // namespace fuselage

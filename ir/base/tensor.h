// TensorType, and Tensor: a typed, row-major block of memory on the host.
#ifndef FUSELAGE_IR_BASE_TENSOR_H_
#define FUSELAGE_IR_BASE_TENSOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/base/check.h"
#include "ir/base/dtype.h"
#include "ir/base/quant_params.h"

namespace fuselage {

using Shape = std::vector<int64_t>;

std::string ToString(const Shape& shape);  // "[1,3,224,224]"

// The number of elements; an error where a dimension is negative or the product overflows int64.
absl::StatusOr<int64_t> CheckedNumElements(const Shape& shape);

// `axis` in [0, rank), counted from the end where negative.
absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank);

// How an executable stores a value of rank 4. Shapes are always logical (N, C, H, W); kNhwc says that channels
// are innermost in memory. Reference evaluation ignores it: its tensors are row-major.
enum class Layout : uint8_t { kRowMajor, kNhwc };

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  std::optional<QuantParams> quant;
  Layout layout = Layout::kRowMajor;

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t num_elements() const;  // The shape has been checked.
  int64_t byte_size() const { return num_elements() * ByteSize(dtype); }

  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.quant == b.quant && a.layout == b.layout;
  }
  friend bool operator!=(const TensorType& a, const TensorType& b) { return !(a == b); }
};

// "i8[1,4,8,8]<scale=0.05, zp=-3>"; with "{nhwc}" after the shape where that is the layout.
std::string ToString(const TensorType& type);

// A buffer with its type, 64-byte aligned unless it is borrowed. Copying copies the data; share with
// shared_ptr<const Tensor>.
class Tensor {
 public:
  Tensor() = default;  // f32, shape [0]: holds nothing.

  // Zero-filled. Aborts on an unchecked shape: use CheckedNumElements first on a user's input.
  explicit Tensor(TensorType type);
  Tensor(DType dtype, Shape shape) : Tensor(TensorType{dtype, std::move(shape), std::nullopt, Layout::kRowMajor}) {}

  template <typename T>
  static Tensor Of(Shape shape, const std::vector<T>& values) {
    Tensor tensor(DTypeOf<T>::value, std::move(shape));
    FUSELAGE_CHECK(static_cast<int64_t>(values.size()) == tensor.num_elements());
    T* out = tensor.data<T>();
    for (const auto& value : values) *out++ = value;
    return tensor;
  }
  template <typename T>
  static Tensor Scalar(T value) {
    return Of<T>({}, {value});
  }
  // Memory that is somebody else's, a file's mapping or a caller's array: type.byte_size() bytes at `data`, aligned
  // for their elements (to 64 bytes where a kernel reads them, as it reads weights), which live as long as `owner`
  // does. The shape is checked as above. A copy owns its data.
  static Tensor Borrow(TensorType type, void* data, std::shared_ptr<const void> owner);

  Tensor(const Tensor& other);
  Tensor& operator=(const Tensor& other);
  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  int rank() const { return type_.rank(); }
  int64_t dim(int axis) const { return type_.shape[axis]; }
  int64_t num_elements() const { return num_elements_; }
  int64_t byte_size() const { return num_elements_ * ByteSize(type_.dtype); }

  // Replaces shape and quantization parameters without touching the data; the element count must stay.
  void set_type(TensorType type);

  void* raw_data() { return data_.get(); }
  const void* raw_data() const { return data_.get(); }

  template <typename T>
  T* data() {
    FUSELAGE_CHECK(DTypeOf<T>::value == type_.dtype);
    return reinterpret_cast<T*>(data_.get());
  }
  template <typename T>
  const T* data() const {
    FUSELAGE_CHECK(DTypeOf<T>::value == type_.dtype);
    return reinterpret_cast<const T*>(data_.get());
  }
  template <typename T>
  absl::Span<const T> values() const {
    return absl::MakeConstSpan(data<T>(), num_elements_);
  }

  // Element `i` in row-major order, whatever the element type. Exact but for i64 beyond 2^53.
  double At(int64_t i) const;
  // Stores `value`: integers round half to even and saturate, NaN becomes 0.
  void Set(int64_t i, double value);

  bool SameBytes(const Tensor& other) const;  // Type and data.

 private:
  struct Free {
    void operator()(uint8_t* data) const;
    std::shared_ptr<const void> owner;  // Null: the memory is the tensor's own.
  };
  TensorType type_{DType::kF32, {0}, std::nullopt, Layout::kRowMajor};
  int64_t num_elements_ = 0;
  std::unique_ptr<uint8_t, Free> data_;
};

// All elements as double, in row-major order (see Tensor::At).
std::vector<double> ToDoubles(const Tensor& tensor);

// The same values in another element type (see Tensor::Set).
Tensor Cast(const Tensor& tensor, DType dtype);

// The real values of a quantized tensor, scale * (q - zero_point), as f32; other tensors are cast to f32.
Tensor Dequantized(const Tensor& tensor);

// Reproducible values: uniform in [-1, 1) for float types, in the type's whole range for u8 and i8, in [-100, 100]
// for wider integers. The same on every machine.
Tensor SeededTensor(TensorType type, uint64_t seed);

// A 64-bit hash of type and data (FNV-1a over 8-byte words, folded): tells tensors apart, guards against no adversary.
uint64_t Fingerprint(const Tensor& tensor);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_TENSOR_H_

#include "frontend/onnx/tensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/widened.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx {
namespace {

using schema::TensorProto;

constexpr absl::string_view kTypedFields = "float_data, int32_data, int64_data, double_data or uint64_data";

// How the elements of a type that the IR has, or that is read as one of these, are stored.
struct Stored {
  DType dtype;
  const Widened* widened;  // Null: stored as the IR has it.

  int64_t Bytes(int64_t count) const { return widened == nullptr ? count * ByteSize(dtype) : Packed(count, 8); }
  // How many of int32_data's numbers.
  int64_t Entries(int64_t count) const { return widened == nullptr ? count : Packed(count, Width()); }
  // Bits of one such number that hold elements.
  int Width() const { return widened->bits < 8 ? 8 : widened->bits; }

 private:
  int64_t Packed(int64_t count, int width) const {
    return widened->bits >= width ? count * (widened->bits / width) : count / 2 + count % 2;
  }
};

absl::StatusOr<Stored> StoredAs(int element_type) {
  const Widened* widened = FindWidenedOrNull(element_type);
  if (widened != nullptr) return Stored{widened->dtype, widened};
  ASSIGN_OR_RETURN(const DType dtype, ToDType(element_type));
  return Stored{dtype, nullptr};
}

// Element i's value, where `entry(k)` is the k-th number of `width` bits.
template <typename F>
double ElementOf(const Widened& widened, int width, int64_t i, F entry) {
  if (widened.bits >= width) return widened.value(entry(i));
  return widened.value(entry(i / 2) >> (i % 2 * 4) & 15);
}

// Little-endian bytes from `offset` on -> elements, straight into the tensor where they are stored as the IR has them.
absl::Status FromBytes(const ByteSource& bytes, int64_t offset, const Stored& stored, Tensor* tensor) {
  const int64_t count = tensor->num_elements();
  if (stored.widened == nullptr) {
    RETURN_IF_ERROR(bytes.Read(offset, tensor->byte_size(), tensor->raw_data()));
    auto* data = static_cast<uint8_t*>(tensor->raw_data());
    for (int64_t i = 0; stored.dtype == DType::kBool && i < count; ++i) data[i] = data[i] != 0;
    return absl::OkStatus();
  }
  constexpr int64_t kAtOnce = 1 << 16;  // Even: two elements of 4 bits share a byte.
  std::vector<uint8_t> piece(stored.Bytes(std::min(count, kAtOnce)));
  const auto entry = [&](int64_t k) -> uint32_t {
    uint16_t bits = piece[k];
    if (stored.widened->bits == 16) std::memcpy(&bits, &piece[2 * k], 2);
    return bits;
  };
  for (int64_t begin = 0; begin < count; begin += kAtOnce) {
    const int64_t end = std::min(begin + kAtOnce, count);
    RETURN_IF_ERROR(bytes.Read(offset + stored.Bytes(begin), stored.Bytes(end - begin), piece.data()));
    for (int64_t i = begin; i < end; ++i) {
      tensor->Set(i, ElementOf(*stored.widened, stored.Width(), i - begin, entry));
    }
  }
  return absl::OkStatus();
}

absl::Status FromInt32(const TensorProto& proto, const Stored& stored, Tensor* tensor) {
  const bool half = proto.data_type() == TensorProto::FLOAT16;
  IntegerRange range{0, 65535};
  if (proto.data_type() == TensorProto::BOOL) {
    range = {0, 1};
  } else if (stored.widened != nullptr) {
    range = {0, (1 << stored.Width()) - 1};
  } else if (!half) {
    range = RangeOf(tensor->dtype());
  }
  for (int i = 0; i < proto.int32_data_size(); ++i) {
    const int32_t value = proto.int32_data(i);
    if (value < range.min || value > range.max) {
      return absl::InvalidArgumentError(
          absl::StrCat("found ", value, " as element ", i, ", wanted a value in [", range.min, ", ", range.max, "]"));
    }
  }
  const auto entry = [&](int64_t k) { return static_cast<uint32_t>(proto.int32_data(static_cast<int>(k))); };
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    if (stored.widened != nullptr) {
      tensor->Set(i, ElementOf(*stored.widened, stored.Width(), i, entry));
    } else if (half) {
      tensor->data<Half>()[i].bits = static_cast<uint16_t>(entry(i));
    } else {
      tensor->Set(i, proto.int32_data(static_cast<int>(i)));
    }
  }
  return absl::OkStatus();
}

// How many typed elements there are in the field that the element type uses, and how many in all typed fields.
struct TypedCount {
  int64_t own, all;
};
TypedCount CountTyped(const TensorProto& proto) {
  const int64_t all = int64_t{proto.float_data_size()} + proto.int32_data_size() + proto.int64_data_size() +
                      proto.double_data_size() + proto.uint64_data_size() + proto.string_data_size();
  switch (proto.data_type()) {
    case TensorProto::FLOAT: return {proto.float_data_size(), all};
    case TensorProto::DOUBLE: return {proto.double_data_size(), all};
    case TensorProto::INT64: return {proto.int64_data_size(), all};
    default: return {proto.int32_data_size(), all};
  }
}

absl::Status FromTyped(const TensorProto& proto, const Stored& stored, Tensor* tensor) {
  const auto copy = [tensor](const void* from) {
    if (tensor->num_elements() > 0) std::memcpy(tensor->raw_data(), from, tensor->byte_size());
    return absl::OkStatus();
  };
  switch (proto.data_type()) {
    case TensorProto::FLOAT: return copy(proto.float_data().data());
    case TensorProto::DOUBLE: return copy(proto.double_data().data());
    case TensorProto::INT64: return copy(proto.int64_data().data());
    default: return FromInt32(proto, stored, tensor);
  }
}

absl::StatusOr<Tensor> ToTensorUnnamed(const TensorProto& proto, const Payloads& payloads, Budget* budget) {
  if (proto.has_segment()) return absl::UnimplementedError("found a segment of a tensor, wanted a whole one");
  ASSIGN_OR_RETURN(const Stored storage, StoredAs(proto.data_type()));
  const DType dtype = storage.dtype;
  const Shape shape(proto.dims().begin(), proto.dims().end());
  ASSIGN_OR_RETURN(const int64_t count, CheckedNumElements(shape));
  const int64_t stored = storage.Bytes(count);  // CheckedNumElements leaves room for 8 bytes an element.

  const TypedCount typed = CountTyped(proto);
  const bool external = proto.data_location() == TensorProto::EXTERNAL;
  const auto left = payloads.raw_data.find(&proto);
  const bool in_place = left != payloads.raw_data.end(), raw = in_place || proto.has_raw_data();
  if (external + raw + (typed.all > 0) > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("found more than one payload, wanted one of raw_data, ", kTypedFields, ", external data"));
  }
  FileRange file;
  if (external) {
    ASSIGN_OR_RETURN(file, FileRange::Open(proto, payloads.folder, stored));
  } else if (raw) {
    const int64_t found = in_place ? left->second.size : static_cast<int64_t>(proto.raw_data().size());
    if (found != stored) {
      return absl::InvalidArgumentError(absl::StrCat("found ", found, " bytes of raw_data, wanted ", stored, " for ",
                                                     ElementTypeName(proto.data_type()), ToString(shape)));
    }
  } else if (typed.own != storage.Entries(count) || typed.all != typed.own) {
    return absl::InvalidArgumentError(absl::StrCat("found ", typed.all, " values, wanted ", storage.Entries(count),
                                                   " for ", ElementTypeName(proto.data_type()), ToString(shape)));
  }

  RETURN_IF_ERROR(budget->Charge(count * ByteSize(dtype), "its data"));
  Tensor tensor(dtype, shape);
  if (external) {
    RETURN_IF_ERROR(FromBytes(file, 0, storage, &tensor));
  } else if (in_place) {
    RETURN_IF_ERROR(FromBytes(*payloads.bytes, left->second.offset, storage, &tensor));
  } else if (raw) {
    RETURN_IF_ERROR(FromBytes(MemoryBytes(proto.raw_data()), 0, storage, &tensor));
  } else {
    RETURN_IF_ERROR(FromTyped(proto, storage, &tensor));
  }
  return tensor;
}

}  // namespace

std::string Quote(absl::string_view name) {
  constexpr size_t kLongest = 200;
  const bool cut = name.size() > kLongest;
  return absl::StrCat("'", absl::Utf8SafeCHexEscape(name.substr(0, kLongest)), cut ? "..." : "", "'");
}

std::string ElementTypeName(int element_type) {
  if (const Widened* widened = FindWidenedOrNull(element_type)) return widened->name;
  if (!schema::TensorProto_DataType_IsValid(element_type)) return absl::StrCat("element type ", element_type);
  return schema::TensorProto_DataType_Name(static_cast<schema::TensorProto_DataType>(element_type));
}

absl::StatusOr<DType> ToDType(int element_type) {
  switch (element_type) {
    case TensorProto::BOOL: return DType::kBool;
    case TensorProto::UINT8: return DType::kU8;
    case TensorProto::INT8: return DType::kI8;
    case TensorProto::INT16: return DType::kI16;
    case TensorProto::INT32: return DType::kI32;
    case TensorProto::INT64: return DType::kI64;
    case TensorProto::FLOAT16: return DType::kF16;
    case TensorProto::FLOAT: return DType::kF32;
    case TensorProto::DOUBLE: return DType::kF64;
    case TensorProto::UNDEFINED: return absl::InvalidArgumentError("found no element type, wanted one");
    default:
      return absl::UnimplementedError(
          absl::StrCat("found ", ElementTypeName(element_type),
                       ", wanted one of BOOL, UINT8, INT8, INT16, INT32, INT64, FLOAT16, FLOAT, DOUBLE"));
  }
}

absl::StatusOr<Tensor> ToTensor(const TensorProto& proto, const Payloads& payloads, Budget* budget) {
  absl::StatusOr<Tensor> tensor = ToTensorUnnamed(proto, payloads, budget);
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("tensor ", Quote(proto.name())));
  return tensor;
}

}  // namespace fuselage::onnx

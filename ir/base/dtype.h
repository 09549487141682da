// Element types, their names in the IR's text, and how to visit them.
#ifndef FUSELAGE_IR_BASE_DTYPE_H_
#define FUSELAGE_IR_BASE_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fuselage {

enum class DType : uint8_t { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kF32, kF64 };

// "bool", "u8", "i8", "i16", "i32", "i64", "f16", "f32", "f64".
absl::string_view DTypeName(DType dtype);
absl::StatusOr<DType> DTypeFromName(absl::string_view name);

// Bytes of one element.
int64_t ByteSize(DType dtype);

bool IsFloat(DType dtype);

// The smallest and largest value of an integer type of at most 32 bits.
struct IntegerRange {
  int64_t min, max;
};
IntegerRange RangeOf(DType dtype);

// IEEE 754 binary16, stored as its bits; arithmetic happens in float.
struct Half {
  uint16_t bits = 0;
};
float ToFloat(Half h);
Half ToHalf(float f);  // Rounds half to even; overflow gives infinity.

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kBool;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::kI8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::kI16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_DTYPE_H_

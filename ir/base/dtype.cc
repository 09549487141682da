#include "ir/base/dtype.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/base/check.h"

namespace fuselage {
namespace {

struct DTypeInfo {
  DType dtype;
  absl::string_view name;
  int64_t bytes;
};

constexpr DTypeInfo kDTypes[] = {
    {DType::kBool, "bool", 1}, {DType::kU8, "u8", 1},   {DType::kI8, "i8", 1},
    {DType::kI16, "i16", 2},   {DType::kI32, "i32", 4}, {DType::kI64, "i64", 8},
    {DType::kF16, "f16", 2},   {DType::kF32, "f32", 4}, {DType::kF64, "f64", 8},
};

}  // namespace

absl::string_view DTypeName(DType dtype) { return kDTypes[static_cast<int>(dtype)].name; }

absl::StatusOr<DType> DTypeFromName(absl::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown element type '", name, "', wanted bool, u8, i8, i16, i32, i64, f16, f32 or f64"));
}

int64_t ByteSize(DType dtype) { return kDTypes[static_cast<int>(dtype)].bytes; }

bool IsFloat(DType dtype) { return dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64; }

IntegerRange RangeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool: return {0, 1};
    case DType::kU8: return {0, 255};
    case DType::kI8: return {-128, 127};
    case DType::kI16: return {-32768, 32767};
    case DType::kI32: return {INT32_MIN, INT32_MAX};
    default: break;
  }
  FUSELAGE_CHECK(dtype == DType::kI64);
  return {INT64_MIN, INT64_MAX};
}

float ToFloat(Half h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000) << 16;
  const uint32_t exponent = (h.bits >> 10) & 0x1f;
  const uint32_t fraction = h.bits & 0x3ff;
  float magnitude;
  if (exponent == 0) {
    magnitude = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    const uint32_t bits = exponent == 31 ? 0x7f800000u | (fraction << 13) : ((exponent + 112) << 23) | (fraction << 13);
    std::memcpy(&magnitude, &bits, sizeof(bits));
  }
  uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  bits |= sign;
  float result;
  std::memcpy(&result, &bits, sizeof(bits));
  return result;
}

Half ToHalf(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return Half{static_cast<uint16_t>(sign | 0x7e00)};   // NaN
  if (magnitude >= 0x477ff000) return Half{static_cast<uint16_t>(sign | 0x7c00)};  // rounds to infinity
  if (magnitude < 0x38800000) {  // below 2^-14: a subnormal, in steps of 2^-24
    float value;
    std::memcpy(&value, &magnitude, sizeof(value));
    return Half{static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(value, 24))))};
  }
  const uint32_t rebiased = magnitude - (112u << 23);
  const uint32_t rounded = rebiased + 0xfff + ((rebiased >> 13) & 1);
  return Half{static_cast<uint16_t>(sign | (rounded >> 13))};
}

}  // namespace fuselage

// One row: plain loops, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_QUANTIZE_ROWS_H_
#define FUSELAGE_KERNELS_QUANTIZE_ROWS_H_

#include <cstdint>

#include "kernels/quantize/quantize.h"

namespace fuselage::quantize {
namespace {

// The range of the codes, without <limits>, whose templates the linker would share.
template <typename Code>
struct Range;
template <>
struct Range<uint8_t> {
  static constexpr int32_t kMin = 0, kMax = 255;
};
template <>
struct Range<int8_t> {
  static constexpr int32_t kMin = -128, kMax = 127;
};
template <>
struct Range<int16_t> {
  static constexpr int32_t kMin = -32768, kMax = 32767;
};
template <>
struct Range<int32_t> {
  static constexpr int32_t kMin = INT32_MIN, kMax = INT32_MAX;
};

template <typename Real, typename Limit>
inline Real Clamp(Real v, Limit lo, Limit hi) {
  v = v < static_cast<Real>(lo) ? static_cast<Real>(lo) : v;
  return v > static_cast<Real>(hi) ? static_cast<Real>(hi) : v;
}

// Adding 1.5 * 2^23 (1.5 * 2^52 to a double) rounds to an integer, half to even. `v` is clamped to where that holds,
// far beyond what saturates with any zero point.
template <typename Code>
inline Code ToCode(float v, int32_t zero_point) {
  v = v == v ? v : 0.0f;
  if constexpr (sizeof(Code) == 4) {
    const double q = Clamp(static_cast<double>(v), -1e12, 1e12);
    const double code = (q + 6755399441055744.0) - 6755399441055744.0 + zero_point;
    return static_cast<Code>(Clamp(code, Range<Code>::kMin, Range<Code>::kMax));
  } else {
    const float q = Clamp(v, -1048576.0f, 1048576.0f);
    const int32_t code = static_cast<int32_t>((q + 12582912.0f) - 12582912.0f) + zero_point;
    return static_cast<Code>(Clamp(code, Range<Code>::kMin, Range<Code>::kMax));
  }
}

template <typename Code>
inline float ToReal(Code q, float scale, int32_t zero_point) {
  if constexpr (sizeof(Code) == 4) {
    return static_cast<float>(static_cast<double>(q) - zero_point) * scale;  // q - zero_point needs 33 bits.
  } else {
    return static_cast<float>(q - zero_point) * scale;
  }
}

template <typename From, typename To>
inline To Map(From x, float scale, int32_t zero_point) {
  if constexpr (DTypeOf<To>::value == DType::kF32) {
    return ToReal(x, scale, zero_point);
  } else {
    return ToCode<To>(static_cast<float>(x) / scale, zero_point);
  }
}

template <typename From, typename To>
inline void MapRow(const Row& r) {
  const From* x = static_cast<const From*>(r.x);
  To* __restrict y = static_cast<To*>(r.y);
  const float* scales = r.scales;
  const int32_t* zero_points = r.zero_points;
  const int64_t n = r.n;
  if (r.x_stride != 1 || r.y_stride != 1 || r.param_stride > 1) {
    for (int64_t i = 0; i < n; ++i) {
      y[i * r.y_stride] = Map<From, To>(x[i * r.x_stride], scales[i * r.param_stride], zero_points[i * r.param_stride]);
    }
  } else if (r.param_stride == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = Map<From, To>(x[i], scales[i], zero_points[i]);
  } else {
    const float scale = scales[0];
    const int32_t zero_point = zero_points[0];
    for (int64_t i = 0; i < n; ++i) y[i] = Map<From, To>(x[i], scale, zero_point);
  }
}

template <typename Real>
inline void QuantizeRow(DType to, const Row& row) {
  switch (to) {
    case DType::kU8: return MapRow<Real, uint8_t>(row);
    case DType::kI8: return MapRow<Real, int8_t>(row);
    case DType::kI16: return MapRow<Real, int16_t>(row);
    default: return MapRow<Real, int32_t>(row);
  }
}

inline void RunRow(const Form& form, const Row& row) {
  if (form.to != DType::kF32) {
    return form.from == DType::kF32 ? QuantizeRow<float>(form.to, row) : QuantizeRow<int32_t>(form.to, row);
  }
  switch (form.from) {
    case DType::kU8: return MapRow<uint8_t, float>(row);
    case DType::kI8: return MapRow<int8_t, float>(row);
    case DType::kI16: return MapRow<int16_t, float>(row);
    default: return MapRow<int32_t, float>(row);
  }
}

}  // namespace
}  // namespace fuselage::quantize

#endif  // FUSELAGE_KERNELS_QUANTIZE_ROWS_H_

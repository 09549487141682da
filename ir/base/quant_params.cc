#include "ir/base/quant_params.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fuselage {
namespace {

// Such as 10, which %g at its shortest writes 1e+01. Not -0, which must read back as it is.
bool IsPlainInteger(double value) {
  return std::fabs(value) < 1e6 && value == std::floor(value) && !(value == 0 && std::signbit(value));
}

float Read(const char* text, float) { return std::strtof(text, nullptr); }
double Read(const char* text, double) { return std::strtod(text, nullptr); }

// As printf's %.*g writes it, with the fewest digits that read back as `value`.
template <typename T>
std::string ShortestDecimal(T value) {
  char text[40];
  // No text is shorter than this one. It may take a digit more, for %g rounds to the nearest decimal of its length, and
  // below a power of two a more distant one may be the only one that reads back.
  char* end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  int digits = static_cast<int>(std::count_if(text, std::find(text, end, 'e'), absl::ascii_isdigit));
  while (true) {
    end = std::to_chars(text, text + sizeof(text) - 1, value, std::chars_format::general, digits).ptr;
    *end = '\0';
    if (Read(text, value) == value || digits >= std::numeric_limits<T>::max_digits10) return text;
    ++digits;
  }
}

}  // namespace

QuantParams PerTensor(float scale, int32_t zero_point) { return {{scale}, {zero_point}, QuantParams::kPerTensor}; }

QuantParams PerAxis(int axis, std::vector<float> scales) {
  std::vector<int32_t> zero_points(scales.size(), 0);
  return {std::move(scales), std::move(zero_points), axis};
}

absl::Status CheckQuantParams(const QuantParams& params, DType dtype, const std::vector<int64_t>& shape) {
  size_t wanted = 1;
  if (!params.per_tensor()) {
    if (params.axis < 0 || params.axis >= static_cast<int>(shape.size())) {
      return absl::InvalidArgumentError(
          absl::StrCat("quantization axis ", params.axis, " of a tensor of rank ", shape.size()));
    }
    wanted = shape[params.axis];
  }
  if (params.scales.size() != wanted || params.zero_points.size() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(params.scales.size(), " scales and ", params.zero_points.size(),
                                                   " zero points, wanted ", wanted, " of each"));
  }
  if (IsFloat(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("quantization parameters on element type ", DTypeName(dtype)));
  }
  const IntegerRange range = RangeOf(dtype);
  for (size_t i = 0; i < wanted; ++i) {
    if (!std::isnormal(params.scales[i]) || params.scales[i] <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("scale ", ShortestText(params.scales[i]), ", wanted a normal float > 0"));
    }
    if (params.zero_points[i] < range.min || params.zero_points[i] > range.max) {
      return absl::InvalidArgumentError(
          absl::StrCat("zero point ", params.zero_points[i], " not in [", range.min, ", ", range.max, "]"));
    }
  }
  return absl::OkStatus();
}

std::string ToString(const QuantParams& params) {
  if (params.per_tensor()) {
    std::string text = absl::StrCat("<scale=", ShortestText(params.scale()));
    if (params.zero_point() != 0) absl::StrAppend(&text, ", zp=", params.zero_point());
    return absl::StrCat(text, ">");
  }
  std::string text = absl::StrCat(
      "<axis=", params.axis, ", scale=[",
      absl::StrJoin(params.scales, ", ", [](std::string* out, float s) { out->append(ShortestText(s)); }), "]");
  bool symmetric = true;
  for (int32_t zero_point : params.zero_points) symmetric = symmetric && zero_point == 0;
  if (!symmetric) absl::StrAppend(&text, ", zp=[", absl::StrJoin(params.zero_points, ", "), "]");
  return absl::StrCat(text, ">");
}

std::string ShortestText(float value) {
  return IsPlainInteger(value) ? absl::StrCat(static_cast<int64_t>(value)) : ShortestDecimal(value);
}

std::string ShortestText(double value) {
  return IsPlainInteger(value) ? absl::StrCat(static_cast<int64_t>(value)) : ShortestDecimal(value);
}

}  // namespace fuselage

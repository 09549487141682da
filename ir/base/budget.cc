#include "ir/base/budget.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

namespace fuselage {

Budget::Budget(int64_t limit) : limit_(limit > 0 ? limit : std::numeric_limits<int64_t>::max()) {}

absl::Status Budget::Charge(int64_t bytes, absl::string_view what) {
  if (bytes > limit_ - used_) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " needs ", bytes, " bytes, wanted at most ", limit_ - used_, " (of ", limit_, " in all)"));
  }
  used_ += bytes;
  return absl::OkStatus();
}

absl::Status Budget::CheckValue(const TensorType& type, absl::string_view what) const {
  if (type.byte_size() <= limit_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(what, " ", ToString(type), " needs ", type.byte_size(), " bytes, wanted at most ", limit_));
}

namespace {

// Whatever their order, so that a network's weights are looked at many at a time.
bool AllFinite(absl::Span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;
  bool all = true;
  for (const float& value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    all &= (bits & kExponent) != kExponent;
  }
  return all;
}

}  // namespace

absl::Status CheckFinite(const Tensor& tensor, absl::string_view what, const ImportOptions& options) {
  if (!IsFloat(tensor.dtype())) return absl::OkStatus();
  if (tensor.dtype() == DType::kF32 && AllFinite(tensor.values<float>())) return absl::OkStatus();
  if (tensor.num_elements() == 1 && std::isinf(tensor.At(0))) return absl::OkStatus();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.At(i);
    if (std::isfinite(value)) continue;
    const std::string message = absl::StrCat(what, ": found ", value, " as element ", i, ", wanted finite values");
    if (!options.allow_nonfinite) {
      return absl::InvalidArgumentError(absl::StrCat(message, " (allow_nonfinite accepts them)"));
    }
    if (options.warnings != nullptr) options.warnings->push_back(message);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace fuselage

#include "ir/base/budget.h"

#include <cmath>
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

absl::Status CheckFinite(const Tensor& tensor, absl::string_view what, const ImportOptions& options) {
  if (!IsFloat(tensor.dtype())) return absl::OkStatus();
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

#include "ir/base/comparison.h"

#include <algorithm>
#include <cmath>

namespace fuselage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Difference kIncomparable = {kInfinity, kInfinity, 0, -kInfinity, 0};

double ErrorOf(double wanted, double found) {
  if (wanted == found || (std::isnan(wanted) && std::isnan(found))) return 0;
  const double error = std::fabs(wanted - found);
  return std::isnan(error) ? kInfinity : error;
}

// A tensor's values, or what its codes mean.
class Values {
 public:
  explicit Values(const Tensor& tensor) : values_(tensor) {
    if (!tensor.type().quant) return;
    dequantized_ = Dequantized(tensor);
    dequantizes_ = true;
  }
  double operator[](int64_t i) const { return dequantizes_ ? dequantized_.At(i) : values_.At(i); }

 private:
  const Tensor& values_;
  Tensor dequantized_;
  bool dequantizes_ = false;
};

}  // namespace

Difference Compare(const Tensor& wanted, const Tensor& found) {
  if (wanted.shape() != found.shape()) return kIncomparable;
  const Values a(wanted), b(found);
  Difference difference;
  double squares = 0, low = kInfinity, high = -kInfinity;
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double error = ErrorOf(a[i], b[i]);
    difference.max_abs_error = std::max(difference.max_abs_error, error);
    squares += error * error;
    if (!std::isfinite(a[i])) continue;
    difference.lost += !std::isfinite(b[i]);
    low = std::min(low, a[i]);
    high = std::max(high, a[i]);
    difference.magnitude = std::max(difference.magnitude, std::fabs(a[i]));
  }
  if (difference.max_abs_error == 0) return difference;
  difference.rms_error = std::sqrt(squares / static_cast<double>(wanted.num_elements()));
  const double signal = low < high ? high - low : difference.magnitude;
  difference.snr_db =
      std::isfinite(difference.rms_error) && signal > 0 ? -20 * std::log10(difference.rms_error / signal) : -kInfinity;
  return difference;
}

Difference Compare(absl::Span<const Tensor> wanted, absl::Span<const Tensor> found) {
  Difference worst;
  if (wanted.size() != found.size()) worst = kIncomparable;
  for (size_t i = 0; i < std::min(wanted.size(), found.size()); ++i) {
    const Difference one = Compare(wanted[i], found[i]);
    worst.max_abs_error = std::max(worst.max_abs_error, one.max_abs_error);
    worst.rms_error = std::max(worst.rms_error, one.rms_error);
    worst.magnitude = std::max(worst.magnitude, one.magnitude);
    worst.snr_db = std::min(worst.snr_db, one.snr_db);
    worst.lost += one.lost;
  }
  return worst;
}

bool IsClose(double found, double wanted, double relative, double absolute) {
  const double error = ErrorOf(wanted, found);
  return error == 0 || (std::isfinite(wanted) && error <= absolute + relative * std::fabs(wanted));
}

}  // namespace fuselage

#include "ir/base/mxfp4.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fuselage::mxfp4 {
namespace {

constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
constexpr int kSign = 8;
constexpr int kLargestExponent = 2;  // E2M1's.

}  // namespace

double FromE2M1(uint8_t code) {
  const double magnitude = kMagnitudes[code % kSign];
  return code & kSign ? -magnitude : magnitude;
}

uint8_t ToE2M1(double value) {
  const double magnitude = std::min(std::fabs(value), 6.0);
  // The distance of neighbours; a magnitude that is an even multiple of it has an even code.
  const double step = magnitude < 2 ? 0.5 : magnitude < 4 ? 1 : 2;
  const double rounded = std::nearbyint(magnitude / step) * step;
  const auto code = std::find(std::begin(kMagnitudes), std::end(kMagnitudes), rounded) - kMagnitudes;
  return static_cast<uint8_t>(code | (std::signbit(value) ? kSign : 0));
}

double FromE8M0(uint8_t code) {
  return code == kE8M0NaN ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1, code - kE8M0One);
}

uint8_t SharedScale(absl::Span<const float> group) {
  double greatest = 0;
  for (float x : group) {
    if (!std::isfinite(x)) return kE8M0NaN;
    greatest = std::max<double>(greatest, std::fabs(x));
  }
  if (greatest == 0) return kE8M0One;
  return static_cast<uint8_t>(std::max(std::ilogb(greatest) - kLargestExponent + kE8M0One, 0));
}

}  // namespace fuselage::mxfp4

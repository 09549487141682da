#include "ir/base/sampling.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace fuselage {
namespace {

using Mode = SampleAxis::Mode;
using Padding = SampleAxis::Padding;

constexpr const char* kModes[] = {"nearest", "bilinear", "bicubic"};
constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};

constexpr double kFar = 1099511627776.0;  // 2^40: positions beyond it are as good as any other outside.

double Clip(double position, int64_t size) { return std::clamp(position, 0.0, static_cast<double>(size - 1)); }

// Mirrored at the edges of the image, or with align_corners at its outer pixels, as often as it takes.
double Reflect(double position, const SampleAxis& axis) {
  const double low = axis.align_corners ? 0 : -0.5;
  const double span = static_cast<double>(axis.align_corners ? axis.size - 1 : axis.size);
  if (span == 0) return 0;
  const double distance = std::fabs(position - low), extra = std::fmod(distance, span);
  const bool flipped = std::fmod(distance - extra, 2 * span) != 0;
  return low + (flipped ? span - extra : extra);
}

// Where a whole position is read, -1 for nowhere.
int64_t Pixel(double position, const SampleAxis& axis) {
  if (axis.padding == Padding::kReflection) position = Reflect(position, axis);
  if (axis.padding != Padding::kZeros) position = Clip(position, axis.size);
  return position >= 0 && position < static_cast<double>(axis.size) ? static_cast<int64_t>(position) : -1;
}

// R. Keys, "Cubic convolution interpolation for digital image processing", with a = -0.75.
double Cubic(double distance) {
  constexpr double a = -0.75;
  const double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

double PositionOf(double coordinate, const SampleAxis& axis) {
  const auto size = static_cast<double>(axis.size);
  const double position = axis.align_corners ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
  return position > -kFar ? std::min(position, kFar) : -kFar;  // NaN too.
}

template <size_t n>
int IndexOf(absl::string_view name, const char* const (&names)[n]) {
  return static_cast<int>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

}  // namespace

AxisTaps GridTaps(const SampleAxis& axis, double coordinate) {
  double position = PositionOf(coordinate, axis);
  // Cubic taps are padded one by one instead: the curve between the outer pixel and its padding counts.
  if (axis.padding == Padding::kReflection) position = Reflect(position, axis);
  if (axis.padding != Padding::kZeros && axis.mode != Mode::kCubic) position = Clip(position, axis.size);
  AxisTaps taps;
  if (axis.mode == Mode::kNearest) {
    taps.count = 1;
    taps.index[0] = Pixel(std::nearbyint(position), axis);
    taps.weight[0] = 1;
    return taps;
  }
  const double floor = std::floor(position), fraction = position - floor;
  const int before = axis.mode == Mode::kCubic;
  taps.count = axis.mode == Mode::kCubic ? 4 : 2;
  for (int t = 0; t < taps.count; ++t) {
    const double distance = fraction - (t - before);
    taps.index[t] = Pixel(floor + (t - before), axis);
    taps.weight[t] = axis.mode == Mode::kCubic ? Cubic(distance) : 1 - std::fabs(distance);
  }
  return taps;
}

absl::StatusOr<RoiAxis> MakeRoiAxis(const RoiBins& bins, double begin, double end, int64_t count) {
  const double offset = bins.aligned ? 0.5 : 0;
  RoiAxis axis;
  axis.start = begin * bins.spatial_scale - offset;
  double size = end * bins.spatial_scale - offset - axis.start;
  if (!bins.aligned) size = std::max(size, 1.0);
  axis.bin = size / static_cast<double>(count);
  const double places = bins.sampling_ratio > 0 ? static_cast<double>(bins.sampling_ratio) : std::ceil(axis.bin);
  if (!std::isfinite(axis.start) || !(places <= static_cast<double>(kMostRoiPlaces))) {
    return absl::InvalidArgumentError(absl::StrCat("found a box from ", begin, " to ", end,
                                                   ", wanted a finite one of at most ", kMostRoiPlaces,
                                                   " places in each of ", count, " bins"));
  }
  axis.places = static_cast<int64_t>(std::max(places, 0.0));
  return axis;
}

AxisTaps RoiTaps(int64_t size, double position) {
  AxisTaps taps;
  if (!(position >= -1 && position <= static_cast<double>(size))) {
    taps.count = 1;
    taps.index[0] = -1;
    return taps;
  }
  position = Clip(position, size);
  const auto low = static_cast<int64_t>(position);
  taps.count = 2;
  taps.index[0] = low;
  taps.index[1] = std::min(low + 1, size - 1);
  taps.weight[1] = position - static_cast<double>(low);
  taps.weight[0] = 1 - taps.weight[1];
  return taps;
}

absl::Span<const char* const> SampleModes() { return kModes; }
absl::Span<const char* const> SamplePaddings() { return kPaddings; }
SampleAxis::Mode SampleModeOf(absl::string_view name) { return static_cast<Mode>(IndexOf(name, kModes)); }
SampleAxis::Padding SamplePaddingOf(absl::string_view name) { return static_cast<Padding>(IndexOf(name, kPaddings)); }

}  // namespace fuselage

#include "ir/base/resize_axis.h"

#include <algorithm>
#include <cmath>

namespace fuselage {
namespace {

constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
constexpr const char* kNearestModes[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
constexpr const char* kCoordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};

// Where output o lies on the input. The length of the output is scale * input, which need not be an integer.
double Coordinate(const std::string& coordinates, const ResizeAxis& axis, int64_t o) {
  const double x = static_cast<double>(o), input = static_cast<double>(axis.input), length = axis.scale * input;
  if (coordinates == "asymmetric") return x / axis.scale;
  if (coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (coordinates == "align_corners") return length == 1 ? 0 : x * (input - 1) / (length - 1);
  if (coordinates == "pytorch_half_pixel" && length == 1) return -0.5;
  if (coordinates == "tf_crop_and_resize") {
    const double extent = axis.roi_end - axis.roi_start;
    const double own = length == 1 ? extent * (input - 1) / 2 : x * extent * (input - 1) / (length - 1);
    return own + axis.roi_start * (input - 1);
  }
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (coordinates != "half_pixel_symmetric") return half_pixel;
  return input / 2 * (1 - static_cast<double>(axis.output) / length) + half_pixel;
}

double Nearest(const std::string& mode, double x) {
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  return mode == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

double Triangle(double distance) { return std::max(0.0, 1 - std::abs(distance)); }

// Keys, "Cubic convolution interpolation for digital image processing", 1981.
double Cubic(double a, double distance) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// The filter at scale 1 has its support on (-radius, radius); an antialiased one on that divided by the scale.
struct Filter {
  int first, taps;  // Its taps, relative to the floor of the coordinate.
  double scale;
};

Filter FilterOf(const ResizeMode& mode, double scale) {
  if (mode.mode == "nearest") return {0, 1, 1};
  const double shrink = mode.antialias ? std::min(scale, 1.0) : 1, radius = mode.mode == "linear" ? 1 : 2;
  const int first = static_cast<int>(std::floor(-radius / shrink)) + 1;
  return {first, 2 - 2 * first, shrink};
}

void FillRow(const ResizeMode& mode, const Filter& filter, int64_t input, double x, int32_t* index, double* weight) {
  const bool nearest = mode.mode == "nearest";
  // A coordinate far outside repeats the edge as one near it does.
  x = std::clamp(x, -3.0 - filter.taps, static_cast<double>(input) + 2 + filter.taps);
  const double base = nearest ? Nearest(mode.nearest_mode, x) : std::floor(x);
  double sum = 0;
  for (int t = 0; t < filter.taps; ++t) {
    const double at = base + filter.first + t, distance = (at - x) * filter.scale;
    index[t] = static_cast<int32_t>(std::clamp(at, 0.0, static_cast<double>(input - 1)));
    weight[t] = nearest ? 1 : mode.mode == "linear" ? Triangle(distance) : Cubic(mode.cubic_coeff_a, distance);
    if (mode.exclude_outside && !nearest && index[t] != at) weight[t] = 0;
    sum += weight[t];
  }
  if (!(mode.exclude_outside || mode.antialias) || sum == 0) return;
  for (int t = 0; t < filter.taps; ++t) weight[t] /= sum;
}

}  // namespace

bool ResizeAxis::IsIdentity(const ResizeMode& mode) const {
  if (input != output || scale != 1) return false;
  if (mode.coordinates == "tf_half_pixel_for_nn") return false;
  return mode.coordinates != "tf_crop_and_resize" || (roi_start == 0 && roi_end == 1);
}

ResizeTable MakeResizeTable(const ResizeMode& mode, const ResizeAxis& axis) {
  const Filter filter = FilterOf(mode, axis.scale);
  ResizeTable table;
  table.taps = filter.taps;
  table.index.resize(axis.output * filter.taps);
  table.weight.resize(axis.output * filter.taps);
  const bool crops = mode.coordinates == "tf_crop_and_resize";
  for (int64_t o = 0; o < axis.output; ++o) {
    const double x = Coordinate(mode.coordinates, axis, o);
    if (crops) table.outside.push_back(x < 0 || x > static_cast<double>(axis.input - 1));
    FillRow(mode, filter, axis.input, x, &table.index[o * filter.taps], &table.weight[o * filter.taps]);
  }
  return table;
}

absl::Span<const char* const> ResizeModes() { return kModes; }
absl::Span<const char* const> ResizeCoordinates() { return kCoordinates; }
absl::Span<const char* const> ResizeNearestModes() { return kNearestModes; }

}  // namespace fuselage

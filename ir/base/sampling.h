// The pixels of an image around a computed place, one axis at a time: a value is the sum, over the taps of each axis,
// of the product of their weights times the pixel. What grid_sample, roi_align and their kernels share. Weights are
// computed in double without libm.
#ifndef FUSELAGE_IR_BASE_SAMPLING_H_
#define FUSELAGE_IR_BASE_SAMPLING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fuselage {

inline constexpr int kMostAxisTaps = 4;

// Pixels of one axis.
struct AxisTaps {
  int count = 0;
  int64_t index[kMostAxisTaps] = {};  // In [0, size); -1: beyond the image, where it is 0.
  double weight[kMostAxisTaps] = {};
};

// One axis of torch.nn.functional.grid_sample.
struct SampleAxis {
  enum class Mode { kNearest, kLinear, kCubic };
  enum class Padding { kZeros, kBorder, kReflection };

  int64_t size = 1;  // At least 1.
  Mode mode = Mode::kLinear;
  Padding padding = Padding::kZeros;
  bool align_corners = false;
};

// Around `coordinate`: -1 and 1 are the edges of the image, or with align_corners the centers of its outer pixels.
// NaN lies beyond the image.
AxisTaps GridTaps(const SampleAxis& axis, double coordinate);

// How roi_align cuts boxes into bins.
struct RoiBins {
  int64_t sampling_ratio = 0;  // Places on each axis of a bin; 0: one for each pixel that it spans, rounded up.
  double spatial_scale = 1;
  bool aligned = false;  // Pixel centers are at 0.5, 1.5, ..., and boxes may be smaller than a pixel.
};
inline constexpr int64_t kMostRoiPlaces = 1 << 12;  // On one axis of a bin.

// One axis of a box.
struct RoiAxis {
  double start = 0, bin = 0;  // In pixels, whose centers are at 0, 1, ...
  int64_t places = 0;         // In each bin.

  double Position(int64_t index, int64_t place) const {
    return start + static_cast<double>(index) * bin +
           (static_cast<double>(place) + 0.5) * bin / static_cast<double>(places);
  }
};
// From the box's edges, as the model gives them, and the number of bins. InvalidArgument: a box that is not finite, or
// of more than kMostRoiPlaces.
absl::StatusOr<RoiAxis> MakeRoiAxis(const RoiBins& bins, double begin, double end, int64_t count);

// Around `position`, pixel centers being 0, 1, ...: linear, where up to one pixel beyond the image counts as its edge
// and more as nothing, as roi_align has it.
AxisTaps RoiTaps(int64_t size, double position);

// What grid_sample's attributes may be (torch's names), in the order of the enums.
absl::Span<const char* const> SampleModes();
absl::Span<const char* const> SamplePaddings();
// Wants one of these.
SampleAxis::Mode SampleModeOf(absl::string_view name);
SampleAxis::Padding SamplePaddingOf(absl::string_view name);

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_SAMPLING_H_

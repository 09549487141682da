// One axis of a resize as a table: output o is the sum over taps t of weight[o][t] * input[index[o][t]]. Resizes are
// separable: axis after axis gives the whole. The arithmetic is that of ONNX's reference implementation of Resize.
#ifndef FUSELAGE_IR_BASE_RESIZE_AXIS_H_
#define FUSELAGE_IR_BASE_RESIZE_AXIS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace fuselage {

struct ResizeMode {
  std::string mode;          // "nearest", "linear" or "cubic".
  std::string coordinates;   // ONNX's coordinate_transformation_mode.
  std::string nearest_mode;  // "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil".
  double cubic_coeff_a = -0.75;
  bool antialias = false;        // Where an axis shrinks, the filter widens with it.
  bool exclude_outside = false;  // Taps beyond the edge have weight 0; else they repeat the edge.
};

struct ResizeAxis {
  int64_t input = 0, output = 0;
  double scale = 1;                   // About output / input: what coordinates are computed with.
  double roi_start = 0, roi_end = 1;  // For "tf_crop_and_resize": in units of the axis.

  // Every output is the input: the axis need not be touched.
  bool IsIdentity(const ResizeMode& mode) const;
};

struct ResizeTable {
  int taps = 0;
  std::vector<int32_t> index;  // [output][taps], in [0, input).
  std::vector<double> weight;  // [output][taps]
  // Outputs that lie beyond the input and take the extrapolation value ("tf_crop_and_resize" only; else empty).
  std::vector<bool> outside;
};

// Wants input >= 1, output < 2^31 and a scale within a factor of about two of output / input.
ResizeTable MakeResizeTable(const ResizeMode& mode, const ResizeAxis& axis);

// What the attributes may be.
absl::Span<const char* const> ResizeModes();
absl::Span<const char* const> ResizeCoordinates();
absl::Span<const char* const> ResizeNearestModes();

}  // namespace fuselage

#endif  // FUSELAGE_IR_BASE_RESIZE_AXIS_H_

// The geometry of convolutions and pools: a window of taps that slides over up to three spatial axes.
#ifndef FUSELAGE_IR_OPS_CORE_WINDOW_H_
#define FUSELAGE_IR_OPS_CORE_WINDOW_H_

#include <array>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/op.h"

namespace fuselage::ops {

// One spatial axis: output o has its taps at o * stride - begin + t * dilation for t in [0, kernel).
struct WindowAxis {
  int64_t input = 1, output = 1;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t begin = 0, end = 0;  // Padding.

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

// Depth, height, width; where there are fewer axes, the leading ones are trivial.
struct Window {
  std::array<WindowAxis, 3> axes;

  int64_t inputs() const { return axes[0].input * axes[1].input * axes[2].input; }
  int64_t outputs() const { return axes[0].output * axes[1].output * axes[2].output; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
};

// The output sizes of the last n axes.
Shape OutputShape(const Window& window, int n);

struct WindowParams {
  absl::Span<const int64_t> input, kernel, stride, dilation;
  absl::Span<const int64_t> padding;  // Begins, then ends (as ONNX orders them).
  // Rounds the output up; a window that would start in the end padding is dropped (as ONNX and PyTorch do).
  bool ceil_mode = false;
};

// Values must be below 2^31 and strides, dilations at least 1 (see CheckInts). Errors name the axis: a window without
// taps, or larger than the padded input.
absl::StatusOr<Window> MakeWindow(const WindowParams& params);

// Calls f(input offset) for each tap of the window at `output` (row-major) that lies inside the input.
template <typename F>
void ForEachTap(const Window& window, int64_t output, F f) {
  const WindowAxis& depth = window.axes[0];
  const WindowAxis& height = window.axes[1];
  const WindowAxis& width = window.axes[2];
  const int64_t w0 = output % width.output * width.stride - width.begin;
  const int64_t h0 = output / width.output % height.output * height.stride - height.begin;
  const int64_t d0 = output / (width.output * height.output) * depth.stride - depth.begin;
  for (int64_t i = 0, d = d0; i < depth.kernel; ++i, d += depth.dilation) {
    if (d < 0 || d >= depth.input) continue;
    for (int64_t j = 0, h = h0; j < height.kernel; ++j, h += height.dilation) {
      if (h < 0 || h >= height.input) continue;
      for (int64_t k = 0, w = w0; k < width.kernel; ++k, w += width.dilation) {
        if (w >= 0 && w < width.input) f((d * height.input + h) * width.input + w);
      }
    }
  }
}

// Taps of the window at `output` that lie inside the padded input: all of them, unless ceil_mode lets it hang over.
int64_t PaddedTaps(const Window& window, int64_t output);

// The attributes stride, padding (begins, then ends) and dilation of n axes, with defaults 1, 0, 1.
std::vector<ir::AttributeSpec> WindowAttributes(int n);
// Lengths and ranges of these.
absl::Status CheckWindowAttributes(const ir::OpCall& call, int n);

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_WINDOW_H_

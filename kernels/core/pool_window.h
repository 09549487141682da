// The window of a 2-d pool, as the variants of max and average pooling walk it.
#ifndef FUSELAGE_KERNELS_CORE_POOL_WINDOW_H_
#define FUSELAGE_KERNELS_CORE_POOL_WINDOW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/placement/placement.h"

namespace fuselage::kernels {

struct PoolWindow {
  int64_t batch = 1, channels = 1;
  struct Axis {  // [0]: height, [1]: width.
    int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad_begin = 0, pad_end = 0;
  } axes[2];
  // Where the pixels of input and output lie: at first + n * image + y * row + x * pixel bytes.
  struct Pitch {
    int64_t first = 0, image = 0, row = 0, pixel = 0;
  } x, y;
};

// From kernel_size, stride, padding (begins, then ends), ceil_mode and, where it is there, dilation. Checks that input
// and output have rank 4 and that the output has the shape that these imply. Not their layout: the LayoutRule does.
// Unimplemented: an operand in blocks (kernels/core/placement/placement.h).
absl::StatusOr<PoolWindow> MakePoolWindow(const KernelDesc& desc);

// The window is the whole image, the output [N, C, 1, 1].
absl::StatusOr<PoolWindow> MakeGlobalPoolWindow(const KernelDesc& desc);

// The taps that lie inside the input, at i * dilation from `start`; none where begin >= end.
struct Taps {
  int64_t start, begin, end;
};
// `static`: sources for one instruction set must not share functions. Not inlined: it divides.
[[gnu::noinline, maybe_unused]] static Taps ValidTaps(const PoolWindow::Axis& axis, int64_t output) {
  const int64_t start = output * axis.stride - axis.pad_begin;
  const int64_t fits = start >= axis.in ? 0 : (axis.in - start + axis.dilation - 1) / axis.dilation;
  return {start, start < 0 ? (-start + axis.dilation - 1) / axis.dilation : 0, fits < axis.kernel ? fits : axis.kernel};
}

// Taps that lie inside the padded input: all of them, unless ceil_mode lets the window hang over.
static inline int64_t PaddedTaps(const PoolWindow::Axis& axis, int64_t output) {
  const int64_t room = axis.in + axis.pad_begin + axis.pad_end - output * axis.stride;
  const int64_t fits = (room + axis.dilation - 1) / axis.dilation;
  return fits < axis.kernel ? fits : axis.kernel;
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_POOL_WINDOW_H_

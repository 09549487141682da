// kernels/core/pool_window.h in 32 bits, for devices.
#ifndef FUSELAGE_KERNELS_CUDA_POOL_WINDOW_H_
#define FUSELAGE_KERNELS_CUDA_POOL_WINDOW_H_

#include <cstdint>

#include "kernels/cuda/arithmetic.h"

namespace fuselage::cuda {

struct PoolWindow {
  int32_t channels = 1;
  struct Axis {  // [0]: height, [1]: width.
    int32_t in, out, kernel, stride, dilation, pad_begin, pad_end;
  } axes[2];
  // Where the pixels of the input lie: at first + n * image + y * row + x * pixel bytes. The output is dense.
  struct Pitch {
    int64_t first, image, row, pixel;
  } x;
};

// The taps that lie inside the input, at i * dilation from `start`; none where begin >= end.
struct Taps {
  int32_t start, begin, end;
  FUSELAGE_HOST_DEVICE int32_t count() const { return end > begin ? end - begin : 0; }
};
FUSELAGE_HOST_DEVICE Taps ValidTaps(const PoolWindow::Axis& axis, int32_t output) {
  const int32_t start = output * axis.stride - axis.pad_begin;
  const int32_t fits = start >= axis.in ? 0 : (axis.in - start + axis.dilation - 1) / axis.dilation;
  return {start, start < 0 ? (-start + axis.dilation - 1) / axis.dilation : 0, fits < axis.kernel ? fits : axis.kernel};
}

// Taps that lie inside the padded input.
FUSELAGE_HOST_DEVICE int32_t PaddedTaps(const PoolWindow::Axis& axis, int32_t output) {
  const int32_t room = axis.in + axis.pad_begin + axis.pad_end - output * axis.stride;
  const int32_t fits = (room + axis.dilation - 1) / axis.dilation;
  return fits < axis.kernel ? fits : axis.kernel;
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_POOL_WINDOW_H_

// The walk over windows that the variants share: each compiles its own copy (internal linkage).
#ifndef FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_ROWS_H_
#define FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_ROWS_H_

#include "kernels/int8/avg_pool2d/avg_pool2d.h"

namespace fuselage::int8::avg_pool2d {
namespace {

// The window of one pixel: `first` is its first valid tap. Steps are in bytes.
struct PixelWindow {
  const uint8_t* first;
  int64_t taps_y, taps_x, step_y, step_x;
  float multiplier;

  int64_t taps() const { return taps_y * taps_x; }
};

// `pixel(window, y)` computes one pixel's channels.
template <typename PixelFunction>
inline void AverageRows(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end,
                        PixelFunction pixel) {
  const kernels::PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
  for (int64_t row = row_begin; row < row_end; ++row) {
    const uint8_t* image = x + p.window.x.first + row / height.out * p.window.x.image;
    const kernels::Taps taps_y = kernels::ValidTaps(height, row % height.out);
    for (int64_t column = 0; column < width.out; ++column) {
      const kernels::Taps taps_x = kernels::ValidTaps(width, column);
      PixelWindow w = {image,
                       taps_y.end - taps_y.begin,
                       taps_x.end - taps_x.begin,
                       height.dilation * p.window.x.row,
                       width.dilation * p.window.x.pixel,
                       0};
      if (w.taps_y > 0 && w.taps_x > 0) {
        w.first += (taps_y.start + taps_y.begin * height.dilation) * p.window.x.row +
                   (taps_x.start + taps_x.begin * width.dilation) * p.window.x.pixel;
        const int64_t count = p.count_include_pad
                                  ? kernels::PaddedTaps(height, row % height.out) * kernels::PaddedTaps(width, column)
                                  : w.taps();
        w.multiplier = p.scale_x / (p.scale_y * static_cast<float>(count));
      } else {
        w.taps_y = w.taps_x = 0;
      }
      pixel(w, y + (row * width.out + column) * p.window.y.pixel);
    }
  }
}

}  // namespace
}  // namespace fuselage::int8::avg_pool2d

#endif  // FUSELAGE_KERNELS_INT8_AVG_POOL2D_AVG_POOL2D_ROWS_H_

// The walk over windows that the vector variants share: each compiles its own copy (internal linkage), with its own
// vector types, and includes the intrinsics before this. `Ops` names a vector's Type and width, Load, Store and Max.
#ifndef FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_
#define FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_

#include "kernels/int8/max_pool2d/max_pool2d.h"

namespace fuselage::int8::max_pool2d {
namespace {

// One window of one pixel: `first` is its first valid tap. Steps are in bytes.
struct PixelWindow {
  const uint8_t* first;
  int64_t taps_y, taps_x, step_y, step_x;
};

struct Byte {
  uint8_t flip;
  uint8_t Max(const PixelWindow& w, int64_t c) const {
    uint8_t largest = 0;
    for (int64_t i = 0; i < w.taps_y; ++i) {
      const uint8_t* tap = w.first + i * w.step_y + c;
      for (int64_t j = 0; j < w.taps_x; ++j, tap += w.step_x) {
        const uint8_t value = *tap ^ flip;
        if (value > largest) largest = value;
      }
    }
    return largest ^ flip;
  }
};

// Channels [c, channels) in steps of Ops::kWidth, two vectors at once where they fit; returns the next channel.
template <typename Ops>
inline int64_t MaxChannels(const Ops& ops, const PixelWindow& w, int64_t c, int64_t channels, uint8_t* y) {
  constexpr int64_t kWidth = Ops::kWidth;
  for (; c + 2 * kWidth <= channels; c += 2 * kWidth) {
    typename Ops::Type largest0 = ops.lowest, largest1 = ops.lowest;
    for (int64_t i = 0; i < w.taps_y; ++i) {
      const uint8_t* tap = w.first + i * w.step_y + c;
      for (int64_t j = 0; j < w.taps_x; ++j, tap += w.step_x) {
        largest0 = ops.Max(largest0, Ops::Load(tap));
        largest1 = ops.Max(largest1, Ops::Load(tap + kWidth));
      }
    }
    Ops::Store(y + c, largest0);
    Ops::Store(y + c + kWidth, largest1);
  }
  for (; c + kWidth <= channels; c += kWidth) {
    typename Ops::Type largest = ops.lowest;
    for (int64_t i = 0; i < w.taps_y; ++i) {
      const uint8_t* tap = w.first + i * w.step_y + c;
      for (int64_t j = 0; j < w.taps_x; ++j, tap += w.step_x) largest = ops.Max(largest, Ops::Load(tap));
    }
    Ops::Store(y + c, largest);
  }
  return c;
}

// `channels_of(window, y)` computes one pixel's channels.
template <typename PixelFunction>
inline void MaxRows(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end,
                    PixelFunction pixel) {
  const kernels::PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
  for (int64_t row = row_begin; row < row_end; ++row) {
    const uint8_t* image = x + p.window.x.first + row / height.out * p.window.x.image;
    uint8_t* to = y + p.window.y.first + row / height.out * p.window.y.image + row % height.out * p.window.y.row;
    const kernels::Taps taps_y = kernels::ValidTaps(height, row % height.out);
    for (int64_t column = 0; column < width.out; ++column) {
      const kernels::Taps taps_x = kernels::ValidTaps(width, column);
      PixelWindow w = {image, taps_y.end - taps_y.begin, taps_x.end - taps_x.begin, height.dilation * p.window.x.row,
                       width.dilation * p.window.x.pixel};
      if (w.taps_y > 0 && w.taps_x > 0) {
        w.first += (taps_y.start + taps_y.begin * height.dilation) * p.window.x.row +
                   (taps_x.start + taps_x.begin * width.dilation) * p.window.x.pixel;
      }
      pixel(w, to + column * p.window.y.pixel);
    }
  }
}

template <bool kSigned>
struct Xmm {
  using Type = __m128i;
  static constexpr int64_t kWidth = 16;
  Type lowest = _mm_set1_epi8(kSigned ? -128 : 0);
  static Type Load(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const Type*>(p)); }
  static void Store(uint8_t* p, Type v) { _mm_storeu_si128(reinterpret_cast<Type*>(p), v); }
  static Type Max(Type a, Type b) { return kSigned ? _mm_max_epi8(a, b) : _mm_max_epu8(a, b); }
};

template <typename Wide, bool kSigned>
inline void WideRows(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  const int64_t channels = p.window.channels;
  const Wide wide;
  const Xmm<kSigned> xmm;
  const Byte byte = {kSigned ? 0x80 : 0};
  MaxRows(p, x, y, row_begin, row_end, [&](const PixelWindow& w, uint8_t* out) {
    int64_t c = MaxChannels(wide, w, 0, channels, out);
    c = MaxChannels(xmm, w, c, channels, out);
    for (; c < channels; ++c) out[c] = byte.Max(w, c);
  });
}

// Rows of either type of codes; Wide<is signed> are the Ops of the widest vectors.
template <template <bool> class Wide>
inline void MaxRowsOf(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  p.is_signed ? WideRows<Wide<true>, true>(p, x, y, row_begin, row_end)
              : WideRows<Wide<false>, false>(p, x, y, row_begin, row_end);
}

}  // namespace
}  // namespace fuselage::int8::max_pool2d

#endif  // FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_

// The walk over windows that the vector variants share: each compiles its own copy (internal linkage), with its own
// vector types, and includes the intrinsics before this. `Ops` names a vector's Type and width, Load, Store and Max.
//
// A window's maximum is that of its columns' maxima, which windows share: the columns of a part of a row first, byte by
// byte whatever the channels, into a buffer in the first-level cache; then the windows.
#ifndef FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_
#define FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_

#include <stdint.h>

#include "kernels/int8/max_pool2d/max_pool2d.h"

namespace fuselage::int8::max_pool2d {
namespace {

// Runs of bytes, each the maxima of `count` runs `step` bytes apart.
struct Maxima {
  const uint8_t* from;
  int64_t count, step;
  uint8_t* to;
  int64_t bytes;
  int64_t runs = 1, from_step = 0, to_step = 0;
};

template <bool kSigned>
struct Xmm {
  using Type = __m128i;
  static constexpr int64_t kWidth = 16;
  Type lowest = _mm_set1_epi8(kSigned ? -128 : 0);
  static Type Load(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const Type*>(p)); }
  static void Store(uint8_t* p, Type v) { _mm_storeu_si128(reinterpret_cast<Type*>(p), v); }
  static Type Max(Type a, Type b) { return kSigned ? _mm_max_epi8(a, b) : _mm_max_epu8(a, b); }
};

// Its low half.
constexpr int64_t kLeastChannels = 8;
template <bool kSigned>
struct Low : Xmm<kSigned> {
  static constexpr int64_t kWidth = kLeastChannels;
  static __m128i Load(const uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
  static void Store(uint8_t* p, __m128i v) { _mm_storel_epi64(reinterpret_cast<__m128i*>(p), v); }
};

// False where a run has less than a vector. The last one has some bytes again. kCount: Maxima's, or 0.
template <int kCount, typename Ops>
inline bool MaxRuns(const Ops& ops, const Maxima& m) {
  const int64_t last = m.bytes - Ops::kWidth;
  if (last < 0) return false;
  const uint8_t* from = m.from;
  uint8_t* to = m.to;
  for (int64_t run = 0; run < m.runs; ++run, from += m.from_step, to += m.to_step) {
    for (int64_t i = 0;; i = i + Ops::kWidth < last ? i + Ops::kWidth : last) {
      const uint8_t* value = from + i;
      typename Ops::Type largest = ops.lowest;
      if constexpr (kCount == 0) {
        for (int64_t k = 0; k < m.count; ++k, value += m.step) largest = ops.Max(largest, Ops::Load(value));
      } else {
        largest = Ops::Load(value);
#pragma GCC unroll 4
        for (int k = 1; k < kCount; ++k) largest = ops.Max(largest, Ops::Load(value + k * m.step));
      }
      Ops::Store(to + i, largest);
      if (i == last) break;
    }
  }
  return true;
}

template <template <bool> class Wide, bool kSigned>
void Maximize(const Maxima& m) {
  const Wide<kSigned> wide;
  const Xmm<kSigned> sixteen;
  const bool done =
      m.count == 3 ? MaxRuns<3>(wide, m) || MaxRuns<3>(sixteen, m) : MaxRuns<0>(wide, m) || MaxRuns<0>(sixteen, m);
  if (!done) MaxRuns<0>(Low<kSigned>(), m);
}

constexpr int64_t kBufferBytes = 8 << 10;

// Wide<is signed>: the Ops of the widest vectors.
template <template <bool> class Wide>
inline void MaxRowsOf(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  const kernels::PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
  const kernels::PoolWindow::Pitch &in = p.window.x, &out = p.window.y;
  void (*const maximize)(const Maxima&) = p.is_signed ? Maximize<Wide, true> : Maximize<Wide, false>;
  alignas(64) uint8_t buffer[kBufferBytes];
  const int64_t extent = (width.kernel - 1) * width.dilation + 1, seen = extent <= width.in ? extent : width.in + 1;
  // Of a window's columns as many channels as fit, and then as many windows.
  const int64_t all = p.window.channels, most_channels = kBufferBytes / seen;
  const int64_t channels = all < most_channels ? all : most_channels;
  if (channels < kLeastChannels) return scalar::Run(p, x, y, row_begin, row_end);
  const int64_t columns = (kBufferBytes / channels - seen) / width.stride + 1;
  for (int64_t done = 0, first; done < all; done = first + channels) {
    first = done + channels < all ? done : all - channels;
    for (int64_t row = row_begin; row < row_end; ++row) {
      const int64_t n = row / height.out, of_image = row - n * height.out;
      const uint8_t* image = x + in.first + n * in.image + first;
      uint8_t* to = y + out.first + n * out.image + of_image * out.row + first;
      const kernels::Taps taps_y = kernels::ValidTaps(height, of_image);
      const int64_t count = taps_y.end - taps_y.begin;
      if (count > 0) image += (taps_y.start + taps_y.begin * height.dilation) * in.row;
      for (int64_t begin = 0; begin < width.out; begin += columns) {
        const int64_t end = begin + columns < width.out ? begin + columns : width.out;
        int64_t left = begin * width.stride - width.pad_begin;
        int64_t right = (end - 1) * width.stride - width.pad_begin + extent;
        left = left < 0 ? 0 : left;
        right = right > width.in ? width.in : right;
        const bool dense = in.pixel == channels;
        maximize({image + left * in.pixel, count, height.dilation * in.row, buffer,
                  channels * (dense ? right - left : 1), dense ? 1 : right - left, in.pixel, channels});
        for (int64_t column = begin; column < end;) {
          const kernels::Taps taps = kernels::ValidTaps(width, column);
          Maxima window = {buffer + (taps.start + taps.begin * width.dilation - left) * channels,
                           taps.end - taps.begin,
                           width.dilation * channels,
                           to + column * out.pixel,
                           channels,
                           1,
                           width.stride * channels,
                           out.pixel};
          if (taps.begin == 0 && taps.end == width.kernel) {  // And those beside it that see no padding either.
            const int64_t whole = (width.in - extent - taps.start) / width.stride + 1;
            window.runs = whole < end - column ? whole : end - column;
          }
          maximize(window);
          column += window.runs;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuselage::int8::max_pool2d

#endif  // FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_

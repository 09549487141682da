// The walk over windows that the vector variants share: each compiles its own copy (internal linkage), with its own
// vector types, and includes the intrinsics before this. `Ops` names a vector's Type and width, Load, Store and Max.
//
// A window's maximum is that of its columns' maxima, which windows share: the columns of a part of a row first, byte by
// byte whatever the channels, into a buffer in the first-level cache; then the windows.
#ifndef FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_
#define FUSELAGE_KERNELS_INT8_MAX_POOL2D_MAX_POOL2D_ROWS_H_

#include <stdint.h>
#include <string.h>

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

// The first sizeof(Word) bytes of it.
template <bool kSigned, typename Word>
struct Low : Xmm<kSigned> {
  static constexpr int64_t kWidth = sizeof(Word);
  static __m128i Load(const uint8_t* p) {
    Word word;
    memcpy(&word, p, sizeof(word));
    return _mm_cvtsi64_si128(word);
  }
  static void Store(uint8_t* p, __m128i v) {
    const Word word = static_cast<Word>(_mm_cvtsi128_si64(v));
    memcpy(p, &word, sizeof(word));
  }
};

// kCount: Maxima's, or 0.
template <int kCount, typename Ops>
inline void MaxVector(const Ops& ops, const uint8_t* from, int64_t step, int64_t count, uint8_t* to) {
  typename Ops::Type largest = kCount == 0 ? ops.lowest : Ops::Load(from);
#pragma GCC unroll 4
  for (int64_t k = kCount == 0 ? 0 : 1; k < (kCount == 0 ? count : kCount); ++k) {
    largest = ops.Max(largest, Ops::Load(from + k * step));
  }
  Ops::Store(to, largest);
}

// False where a run has less than a vector. The last one has some bytes again.
template <int kCount, typename Ops>
inline bool MaxRuns(const Ops& ops, const Maxima& m) {
  if (m.bytes < Ops::kWidth) return false;
  const uint8_t* from = m.from;
  uint8_t* to = m.to;
  for (int64_t run = 0; run < m.runs; ++run, from += m.from_step, to += m.to_step) {
    int64_t i = 0;
    for (; i + Ops::kWidth <= m.bytes; i += Ops::kWidth) MaxVector<kCount>(ops, from + i, m.step, m.count, to + i);
    if (i == m.bytes) continue;
    i = m.bytes - Ops::kWidth;
    MaxVector<kCount>(ops, from + i, m.step, m.count, to + i);
  }
  return true;
}

template <typename Wide, bool kSigned>
class Maximum {
 public:
  void operator()(const Maxima& m) const {
    switch (m.count) {
      case 2: return Of<2>(m);
      case 3: return Of<3>(m);
      case 5: return Of<5>(m);
      default: return Of<0>(m);
    }
  }

 private:
  template <int kCount>
  inline void Of(const Maxima& m) const {
    if (MaxRuns<kCount>(wide_, m) || MaxRuns<kCount>(sixteen_, m) || MaxRuns<kCount>(eight_, m)) return;
    if (!MaxRuns<kCount>(four_, m)) MaxRuns<kCount>(one_, m);
  }

  const Wide wide_;
  const Xmm<kSigned> sixteen_;
  const Low<kSigned, int64_t> eight_;
  const Low<kSigned, int32_t> four_;
  const Low<kSigned, int8_t> one_;
};

constexpr int64_t kBufferBytes = 8 << 10;

template <typename Wide, bool kSigned>
inline void WideRows(const Params& p, const uint8_t* x, uint8_t* y, int64_t row_begin, int64_t row_end) {
  const kernels::PoolWindow::Axis &height = p.window.axes[0], &width = p.window.axes[1];
  const kernels::PoolWindow::Pitch &in = p.window.x, &out = p.window.y;
  const Maximum<Wide, kSigned> maximum;
  alignas(64) uint8_t buffer[kBufferBytes];
  const int64_t extent = (width.kernel - 1) * width.dilation + 1, seen = extent < width.in ? extent : width.in;
  if (seen > kBufferBytes) return scalar::Run(p, x, y, row_begin, row_end);
  // Of a window's columns as many channels as fit, and then as many windows.
  const int64_t most_channels = kBufferBytes / seen;
  for (int64_t first = 0, channels; first < p.window.channels; first += channels) {
    channels = p.window.channels - first < most_channels ? p.window.channels - first : most_channels;
    const int64_t columns = (kBufferBytes / channels - seen) / width.stride + 1;
    for (int64_t row = row_begin; row < row_end; ++row) {
      const uint8_t* image = x + in.first + row / height.out * in.image + first;
      uint8_t* to = y + out.first + row / height.out * out.image + row % height.out * out.row + first;
      const kernels::Taps taps_y = kernels::ValidTaps(height, row % height.out);
      const int64_t count = taps_y.end - taps_y.begin;
      if (count > 0) image += (taps_y.start + taps_y.begin * height.dilation) * in.row;
      for (int64_t begin = 0; begin < width.out; begin += columns) {
        const int64_t end = begin + columns < width.out ? begin + columns : width.out;
        int64_t left = begin * width.stride - width.pad_begin;
        int64_t right = (end - 1) * width.stride - width.pad_begin + extent;
        left = left < 0 ? 0 : left;
        right = right > width.in ? width.in : right;
        const bool dense = in.pixel == channels;
        maximum({image + left * in.pixel, count, height.dilation * in.row, buffer,
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
          maximum(window);
          column += window.runs;
        }
      }
    }
  }
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

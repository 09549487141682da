// The walk over blocks of pixels, which the vector variants share: each compiles its own copy (internal linkage).
// Include the intrinsics first.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_INTERLEAVE_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_INTERLEAVE_H_

#include <cstring>

#include "kernels/int8/quantize/interleave3.h"
#include "kernels/int8/quantize/quantize.h"

namespace fuselage::int8::quantize {
namespace {

// What comes next: an input comes from memory, which loads in order do not hide.
template <int kBlock>
inline void FetchNext(const float* x) {
  constexpr int kAhead = 512, kLine = 16;
  for (int i = 0; i < kBlock; i += kLine) _mm_prefetch(x + kAhead + i, _MM_HINT_T0);
}

// `quantize(float*, uint8_t*)` maps kBlock values. `n` values that keep their order.
template <int kBlock, typename QuantizeFunction>
[[gnu::noinline]] void QuantizeRun(const float* x, uint8_t* y, int64_t n, QuantizeFunction quantize) {
  for (; n >= kBlock; n -= kBlock, x += kBlock, y += kBlock) quantize(x, y);
  if (n == 0) return;
  float values[kBlock] = {};
  uint8_t codes[kBlock];
  std::memcpy(values, x, n * sizeof(float));
  quantize(values, codes);
  std::memcpy(y, codes, n);
}

// Column i of 16 rows, `step` apart, to pixels[i]. Each time that the first half of the rows is zipped with the second,
// what a row and a column have in common moves on by one bit. In loops: what they take is hidden by the divisions.
[[gnu::noinline]] static void Transpose16(const uint8_t* rows, int64_t step, __m128i pixels[16]) {
  __m128i zipped[16];
  for (int k = 0; k < 16; ++k) pixels[k] = Load16(rows + k * step);
  for (int half = 0; half < 2; ++half) {
    const auto zip = [](const __m128i* from, __m128i* to) {
      for (int k = 0; k < 8; ++k, to += 2) {
        to[0] = _mm_unpacklo_epi8(from[k], from[k + 8]);
        to[1] = _mm_unpackhi_epi8(from[k], from[k + 8]);
      }
    };
    zip(pixels, zipped);
    zip(zipped, pixels);
  }
}

// Pixels [begin, end) of one image, all channels.
template <int kBlock, typename QuantizeFunction>
inline void QuantizePixels(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end,
                           QuantizeFunction quantize) {
  // Planes quantized before they are interleaved, and of each so many pixels that pages and lines are not for a few.
  constexpr int64_t kChannels = 16, kPixels = 128;
  uint8_t planes[kChannels][kPixels];
  for (int64_t pixel = begin; pixel < end; pixel += kPixels) {
    const int64_t count = end - pixel < kPixels ? end - pixel : kPixels;
    // Vectors of the last channels reach into the next pixel, whose own come later.
    for (int64_t left = p.channels, channels; left > 0; left -= channels) {
      channels = left % kChannels == 0 ? kChannels : left % kChannels;
      const int64_t first = left - channels;
      for (int64_t c = 0; c < channels; ++c) {
        const float* from = x + (first + c) * p.pixels + pixel;
        FetchNext<kPixels>(from);
        QuantizeRun<kBlock>(from, planes[c], count, quantize);
      }
      uint8_t* out = y + pixel * p.channels + first;
      for (int64_t i = 0; i < count; i += kChannels) {
        if (p.channels == 3 && count - i >= kChannels) {
          Interleave3(planes[0] + i, planes[1] + i, planes[2] + i, out + 3 * i);
          continue;
        }
        __m128i pixels[kChannels];
        Transpose16(planes[0] + i, kPixels, pixels);
        for (int64_t k = i; k < i + kChannels && k < count; ++k) {
          uint8_t* to = out + k * p.channels;
          const bool reaches = (count - k) * p.channels - first < kChannels;  // Past the last pixel.
          reaches ? std::memcpy(to, &pixels[k - i], channels) : std::memcpy(to, &pixels[k - i], kChannels);
        }
      }
    }
  }
}

// Pixels [begin, end) of all images.
template <int kBlock, typename QuantizeFunction>
inline void QuantizeImages(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end,
                           QuantizeFunction quantize) {
  if (p.channels == 1) return QuantizeRun<kBlock>(x + begin, y + begin, end - begin, quantize);
  while (begin < end) {
    const int64_t image = begin / p.pixels, first = begin - image * p.pixels;
    const int64_t last = end - image * p.pixels < p.pixels ? end - image * p.pixels : p.pixels;
    const int64_t offset = image * p.pixels * p.channels;
    QuantizePixels<kBlock>(p, x + offset, y + offset, first, last, quantize);
    begin += last - first;
  }
}

}  // namespace
}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_INTERLEAVE_H_

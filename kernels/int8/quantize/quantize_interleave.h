// From planes of codes to pixels, and the walk over blocks of pixels, which the vector variants share: each compiles
// its own copy (internal linkage). Include the intrinsics first.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_INTERLEAVE_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_INTERLEAVE_H_

#include <cstring>

#include "kernels/int8/quantize/quantize.h"

namespace fuselage::int8::quantize {
namespace {

inline __m128i Load16(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

// 16 pixels of three channels: byte k of the result is channel k % 3 of pixel k / 3; -1 clears.
inline void Interleave3(const uint8_t* plane0, const uint8_t* plane1, const uint8_t* plane2, uint8_t* y) {
  const __m128i a = Load16(plane0), b = Load16(plane1), c = Load16(plane2);
  const __m128i a0 = _mm_setr_epi8(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5);
  const __m128i b0 = _mm_setr_epi8(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1);
  const __m128i c0 = _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1);
  const __m128i a1 = _mm_setr_epi8(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1);
  const __m128i b1 = _mm_setr_epi8(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10);
  const __m128i c1 = _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1);
  const __m128i a2 = _mm_setr_epi8(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1);
  const __m128i b2 = _mm_setr_epi8(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1);
  const __m128i c2 = _mm_setr_epi8(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15);
  __m128i* out = reinterpret_cast<__m128i*>(y);
  _mm_storeu_si128(
      out, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, a0), _mm_shuffle_epi8(b, b0)), _mm_shuffle_epi8(c, c0)));
  _mm_storeu_si128(
      out + 1, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, a1), _mm_shuffle_epi8(b, b1)), _mm_shuffle_epi8(c, c1)));
  _mm_storeu_si128(
      out + 2, _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, a2), _mm_shuffle_epi8(b, b2)), _mm_shuffle_epi8(c, c2)));
}

// What comes next: an input comes from memory, which loads in order do not hide.
template <int kBlock>
inline void FetchNext(const float* x) {
  constexpr int kAhead = 512, kLine = 16;
  for (int i = 0; i < kBlock; i += kLine) _mm_prefetch(x + kAhead + i, _MM_HINT_T0);
}

// `quantize(float*, uint8_t*)` maps kBlock values. `n` values that keep their order.
template <int kBlock, typename QuantizeFunction>
inline void QuantizeRun(const float* x, uint8_t* y, int64_t n, QuantizeFunction quantize) {
  for (; n >= kBlock; n -= kBlock, x += kBlock, y += kBlock) quantize(x, y);
  if (n == 0) return;
  float values[kBlock] = {};
  uint8_t codes[kBlock];
  std::memcpy(values, x, n * sizeof(float));
  quantize(values, codes);
  std::memcpy(y, codes, n);
}

// Pixels [begin, end) of one image, all channels.
template <int kBlock, typename QuantizeFunction>
inline void QuantizePixels(const Params& p, const float* x, uint8_t* y, int64_t begin, int64_t end,
                           QuantizeFunction quantize) {
  constexpr int64_t kChannels = 16;  // Planes quantized before they are interleaved.
  uint8_t planes[kChannels][kBlock];
  for (int64_t pixel = begin; pixel < end; pixel += kBlock) {
    const int64_t count = end - pixel < kBlock ? end - pixel : kBlock;
    for (int64_t first = 0; first < p.channels; first += kChannels) {
      const int64_t channels = p.channels - first < kChannels ? p.channels - first : kChannels;
      for (int64_t c = 0; c < channels; ++c) {
        const float* from = x + (first + c) * p.pixels + pixel;
        FetchNext<kBlock>(from);
        QuantizeRun<kBlock>(from, planes[c], count, quantize);
      }
      uint8_t* out = y + pixel * p.channels + first;
      if (p.channels == 3 && count == kBlock) {
        for (int i = 0; i < kBlock; i += 16) Interleave3(planes[0] + i, planes[1] + i, planes[2] + i, out + 3 * i);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t c = 0; c < channels; ++c) out[i * p.channels + c] = planes[c][i];
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

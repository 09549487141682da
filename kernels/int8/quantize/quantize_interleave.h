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

// The walk over blocks of pixels that the vector variants share: each compiles its own copy (internal linkage).
#ifndef FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_PIXELS_H_
#define FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_PIXELS_H_

#include <cstring>

#include "kernels/int8/dequantize/dequantize.h"

namespace fuselage::int8::dequantize {
namespace {

// `dequantize(uint8_t*, float*)` maps kBlock values. `n` values that keep their order.
template <int kBlock, typename DequantizeFunction>
inline void DequantizeRun(const uint8_t* x, float* y, int64_t n, DequantizeFunction dequantize) {
  for (; n >= kBlock; n -= kBlock, x += kBlock, y += kBlock) dequantize(x, y);
  if (n == 0) return;
  uint8_t codes[kBlock] = {};
  float values[kBlock];
  std::memcpy(codes, x, n);
  dequantize(codes, values);
  std::memcpy(y, values, n * sizeof(float));
}

// Pixels [begin, end) of all images.
template <int kBlock, typename DequantizeFunction>
inline void DequantizePixels(const Params& p, const uint8_t* x, float* y, int64_t begin, int64_t end,
                             DequantizeFunction dequantize) {
  if (p.channels == 1) return DequantizeRun<kBlock>(x + begin, y + begin, end - begin, dequantize);
  while (begin < end) {
    const int64_t image = begin / p.pixels, pixel = begin - image * p.pixels;
    int64_t count = end - begin < kBlock ? end - begin : kBlock;
    if (count > p.pixels - pixel) count = p.pixels - pixel;
    const uint8_t* from = x + begin * p.pixel_step;
    float* to = y + image * p.pixels * p.channels + pixel;
    for (int64_t c = 0; c < p.channels; ++c) {
      uint8_t codes[kBlock] = {};
      for (int64_t i = 0; i < count; ++i) codes[i] = from[i * p.pixel_step + c];
      DequantizeRun<kBlock>(codes, to + c * p.pixels, count, dequantize);
    }
    begin += count;
  }
}

}  // namespace
}  // namespace fuselage::int8::dequantize

#endif  // FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_PIXELS_H_

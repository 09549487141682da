// What the variants of int8.dequantize are given, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_PARAMS_H_
#define FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_PARAMS_H_

#include <cstdint>

namespace fuselage::int8::dequantize {

// The zero point is that of the unsigned form (see UnsignedForm).
struct Params {
  // x is [images][pixels][channels], y is [images][channels][pixels]; a tensor that keeps its order has one channel and
  // is one image.
  int64_t images = 1, channels = 1, pixels = 0;
  int64_t pixel_step = 1;  // From pixel to pixel of x; with one channel 1.
  float scale = 1;
  uint8_t flip = 0;
  int32_t zero_point = 0;
};

}  // namespace fuselage::int8::dequantize

#endif  // FUSELAGE_KERNELS_INT8_DEQUANTIZE_DEQUANTIZE_PARAMS_H_

// What the variants of int8.quantize are given, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_PARAMS_H_
#define FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_PARAMS_H_

#include <cstdint>

namespace fuselage::int8::quantize {

// Zero point and clamp are those of the unsigned form (see UnsignedForm).
struct Params {
  // x is [images][channels][pixels], y is [images][pixels][channels]; a tensor that keeps its order has one channel
  // and is one image.
  int64_t images = 1, channels = 1, pixels = 0;
  float scale = 1;
  uint8_t flip = 0;
  int32_t zero_point = 0;
  int32_t lo = 0, hi = 255;
};

}  // namespace fuselage::int8::quantize

#endif  // FUSELAGE_KERNELS_INT8_QUANTIZE_QUANTIZE_PARAMS_H_

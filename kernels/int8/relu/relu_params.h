// What the variants of int8.relu are given, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_RELU_RELU_PARAMS_H_
#define FUSELAGE_KERNELS_INT8_RELU_RELU_PARAMS_H_

#include <cstdint>

namespace fuselage::int8::relu {

// Zero points and clamp are those of the unsigned form (see UnsignedForm).
struct Params {
  bool same = false;  // The first form.
  uint8_t flip_x = 0, flip_y = 0;
  int32_t zero_point_x = 0, zero_point_y = 0;
  float multiplier = 1;
  int32_t lo = 0, hi = 255;
};

}  // namespace fuselage::int8::relu

#endif  // FUSELAGE_KERNELS_INT8_RELU_RELU_PARAMS_H_

// What the variants of int8.add are given, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_ADD_ADD_PARAMS_H_
#define FUSELAGE_KERNELS_INT8_ADD_ADD_PARAMS_H_

#include <cstdint>

namespace fuselage::int8::add {

// Zero points and clamp are those of the unsigned form (see UnsignedForm).
struct Params {
  uint8_t flip_a = 0, flip_b = 0, flip_y = 0;
  int32_t zero_point_a = 0, zero_point_b = 0, zero_point_y = 0;
  float multiplier_a = 0, multiplier_b = 0;
  int32_t lo = 0, hi = 255;
};

}  // namespace fuselage::int8::add

#endif  // FUSELAGE_KERNELS_INT8_ADD_ADD_PARAMS_H_

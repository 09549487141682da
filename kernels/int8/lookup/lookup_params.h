// What int8.lookup's loops are given, on all devices.
#ifndef FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_PARAMS_H_
#define FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_PARAMS_H_

#include <cstdint>

namespace fuselage::int8::lookup {

// y is [images][pixels][channels]. An image of x has as many bytes, in planes or in pixels, as the strides say. What
// keeps its order, and is dense, has one channel: with one table it is one image; with many, of planes, each plane is
// an image, and they take the tables in turn.
struct Params {
  int64_t images = 1, channels = 1, pixels = 0;
  int64_t channel_stride = 0, pixel_stride = 1;  // Of x.
  int64_t tables = 1;                            // One, or as many as the operand has channels.
};

}  // namespace fuselage::int8::lookup

#endif  // FUSELAGE_KERNELS_INT8_LOOKUP_LOOKUP_PARAMS_H_

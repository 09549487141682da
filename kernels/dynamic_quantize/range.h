// A plain loop, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_RANGE_H_
#define FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_RANGE_H_

#include <cstring>

#include "kernels/dynamic_quantize/dynamic_quantize.h"

namespace fuselage::dynamic_quantize {

static inline int32_t ToOrdered(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits ^ (bits >> 31 & 0x7fffffff);
}

static inline Range RangeOf(const float* x, int64_t n) {
  int32_t least = 0, greatest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t v = ToOrdered(x[i]);
    least = v < least ? v : least;
    greatest = v > greatest ? v : greatest;
  }
  return {least, greatest};
}

}  // namespace fuselage::dynamic_quantize

#endif  // FUSELAGE_KERNELS_DYNAMIC_QUANTIZE_RANGE_H_

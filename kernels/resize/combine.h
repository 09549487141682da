// Plain loops over a row, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_RESIZE_COMBINE_H_
#define FUSELAGE_KERNELS_RESIZE_COMBINE_H_

#include "kernels/resize/resize.h"

namespace fuselage::resize {

static inline void Combine(const Row& row, const float* from, const int32_t* index, const float* weight, float* to) {
  const int64_t inner = row.inner;
  const float *a = from + index[0] * inner, *b = from + index[row.taps > 1] * inner;
  if (row.taps == 1) {
    for (int64_t i = 0; i < inner; ++i) to[i] = weight[0] * a[i];
    return;
  }
  for (int64_t i = 0; i < inner; ++i) to[i] = weight[0] * a[i] + weight[1] * b[i];
  for (int t = 2; t < row.taps; ++t) {
    const float* next = from + index[t] * inner;
    for (int64_t i = 0; i < inner; ++i) to[i] += weight[t] * next[i];
  }
}

}  // namespace fuselage::resize

#endif  // FUSELAGE_KERNELS_RESIZE_COMBINE_H_

// Plain loops over columns, which each instruction set's source compiles into vectors of its own.
#ifndef FUSELAGE_KERNELS_SOFTMAX_COLUMNS_H_
#define FUSELAGE_KERNELS_SOFTMAX_COLUMNS_H_

#include "ir/base/elementwise_math.h"
#include "kernels/softmax/softmax.h"

namespace fuselage::softmax {

static inline void RunColumns(const Params& p, const float* x, float* y) {
  float largest[kMostColumns], sum[kMostColumns];
  for (int64_t j = 0; j < p.columns; ++j) {
    largest[j] = x[j];
    sum[j] = 0;
  }
  for (int64_t k = 1; k < p.length; ++k) {
    const float* row = x + k * p.stride;
    for (int64_t j = 0; j < p.columns; ++j) largest[j] = row[j] > largest[j] ? row[j] : largest[j];
  }
  for (int64_t k = 0; k < p.length; ++k) {
    const float* row = x + k * p.stride;
    float* to = y + k * p.stride;
    for (int64_t j = 0; j < p.columns; ++j) {
      const float below = row[j] - largest[j];
      const float power = below <= -87.0f ? 0.0f : elementwise::ExpOfNegative(below);  // Of NaN: NaN.
      to[j] = power;
      sum[j] += power;
    }
  }
  for (int64_t k = 0; k < p.length; ++k) {
    float* to = y + k * p.stride;
    for (int64_t j = 0; j < p.columns; ++j) to[j] /= sum[j];
  }
}

}  // namespace fuselage::softmax

#endif  // FUSELAGE_KERNELS_SOFTMAX_COLUMNS_H_

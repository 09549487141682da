// What int8.group_norm computes, on all devices; ir/ops/int8/group_norm has the formulas.
#ifndef FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_PARAMS_H_
#define FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_PARAMS_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"

namespace fuselage::int8::group_norm {

// Of codes as they are: the zero point is taken from what they add up to.
struct Sums {
  int64_t codes, squares;
};

struct Group {
  double mean, factor;
};
// Of n codes with these sums.
FUSELAGE_ELEMENTWISE Group GroupOf(int64_t n, Sums sums, int32_t zero_point, float scale, double eps) {
  const int64_t sum = sums.codes - n * zero_point;
  const int64_t squares = sums.squares - 2 * zero_point * sums.codes + n * zero_point * zero_point;
  const double count = static_cast<double>(n), step = scale;
  const double variance = static_cast<double>(n * squares - sum * sum) / (count * count);
  return {static_cast<double>(sum) / count, 1 / __builtin_sqrt(variance * (step * step) + eps)};
}

// y = fma(q - z, gain, offset).
struct Channel {
  float gain, offset;
};
FUSELAGE_ELEMENTWISE Channel ChannelOf(const Group& group, float scale, float weight, float bias) {
  const double gain = group.factor * scale * weight;
  return {static_cast<float>(gain), static_cast<float>(bias - group.mean * gain)};
}

}  // namespace fuselage::int8::group_norm

#endif  // FUSELAGE_KERNELS_INT8_GROUP_NORM_GROUP_NORM_PARAMS_H_

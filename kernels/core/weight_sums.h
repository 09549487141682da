#ifndef FUSELAGE_KERNELS_CORE_WEIGHT_SUMS_H_
#define FUSELAGE_KERNELS_CORE_WEIGHT_SUMS_H_

#include <cstdint>

#include "ir/base/tensor.h"

namespace fuselage::kernels {

// Of the values of an output channel: their sum, that of their magnitudes, and the largest of these.
struct ChannelSums {
  int64_t sum, magnitude, largest;
};

TensorType WeightSumsType(const Tensor& weight);
// i64 [oc, 3], for each output channel of the weight, i8 [oc, ...], its ChannelSums.
Tensor WeightSums(const Tensor& weight);
inline ChannelSums SumsOf(const Tensor& weight_sums, int64_t channel) {
  const int64_t* sums = weight_sums.data<int64_t>() + 3 * channel;
  return {sums[0], sums[1], sums[2]};
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_WEIGHT_SUMS_H_

#ifndef FUSELAGE_KERNELS_CORE_WEIGHT_SUMS_H_
#define FUSELAGE_KERNELS_CORE_WEIGHT_SUMS_H_

#include "ir/base/tensor.h"

namespace fuselage::kernels {

TensorType WeightSumsType(const Tensor& weight);
// i64 [oc, 2]: for each output channel of the weight, i8 [oc, ...], the sum of its values and of their magnitudes.
Tensor WeightSums(const Tensor& weight);

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_WEIGHT_SUMS_H_

// Where the elements of a tensor lie.
#ifndef FUSELAGE_KERNELS_CORE_STRIDES_H_
#define FUSELAGE_KERNELS_CORE_STRIDES_H_

#include <cstdint>
#include <vector>

#include "ir/base/tensor.h"

namespace fuselage::kernels {

// Distances in elements between neighbours along each axis, in the layout of the type.
inline std::vector<int64_t> StridesOf(const TensorType& type) {
  const Shape& shape = type.shape;
  if (shape.size() == 4 && type.layout == Layout::kNhwc) {
    return {shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]};
  }
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

}  // namespace fuselage::kernels

#endif  // FUSELAGE_KERNELS_CORE_STRIDES_H_

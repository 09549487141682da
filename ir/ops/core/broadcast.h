// NumPy broadcasting (numpy.org, "Broadcasting"): shapes align at the right, and a dimension of 1 stretches.
#ifndef FUSELAGE_IR_OPS_CORE_BROADCAST_H_
#define FUSELAGE_IR_OPS_CORE_BROADCAST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/tensor.h"

namespace fuselage::ops {

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// Strides that walk a row-major tensor of shape `from` as if it had the shape `to`, 0 where it is stretched
// (see ForEachOffset). `from` must broadcast to `to`.
std::vector<int64_t> BroadcastStrides(const Shape& from, const Shape& to);

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_BROADCAST_H_

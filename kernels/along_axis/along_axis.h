// Ops that work line by line along an axis, in row-major tensors: the bits of their reference evaluation, or for
// exponentials and logarithms those of ir/base/wide_math.h; the same on every machine and number of threads.
//
//   argmax argmin cumsum          of i32, i64 and f32, cumsum in double
//   log_softmax hardmax logsumexp of f32, logsumexp along one axis or neighbouring ones
//
// Declines (Unimplemented): other element types, tensors without elements, logsumexp along axes that are no neighbours.
#ifndef FUSELAGE_KERNELS_ALONG_AXIS_ALONG_AXIS_H_
#define FUSELAGE_KERNELS_ALONG_AXIS_ALONG_AXIS_H_

#include <memory>

#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::along_axis {

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::along_axis

#endif  // FUSELAGE_KERNELS_ALONG_AXIS_ALONG_AXIS_H_

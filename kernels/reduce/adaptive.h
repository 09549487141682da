// adaptive_avg_pool1d..3d of f32 in either layout: means over windows that tile the input, in double, of the first
// spatial axis, of those along the second, and so on, rounded once: the reference's bits (ir/ops/adaptive_avg_pool).
#ifndef FUSELAGE_KERNELS_REDUCE_ADAPTIVE_H_
#define FUSELAGE_KERNELS_REDUCE_ADAPTIVE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"

namespace fuselage::reduce {

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateAdaptive(const kernels::KernelDesc& desc);

}  // namespace fuselage::reduce

#endif  // FUSELAGE_KERNELS_REDUCE_ADAPTIVE_H_

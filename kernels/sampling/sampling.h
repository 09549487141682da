// grid_sample, roi_align (ir/ops/sampling): pixels and weights from ir/base/sampling.h, sums in f32. All operands are
// row-major; f32 only, other element types are declined (Unimplemented). A box of an image that is not there, or that
// is not finite, is an error of the run.
#ifndef FUSELAGE_KERNELS_SAMPLING_SAMPLING_H_
#define FUSELAGE_KERNELS_SAMPLING_SAMPLING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::sampling {

using KernelOr = absl::StatusOr<std::unique_ptr<kernels::Kernel>>;

KernelOr CreateGridSample(const kernels::KernelDesc& desc);
KernelOr CreateRoiAlign(const kernels::KernelDesc& desc);

void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::sampling

#endif  // FUSELAGE_KERNELS_SAMPLING_SAMPLING_H_

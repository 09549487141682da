// resize (ir/ops/resize): axis after axis, each by a table of positions and weights that is made with the kernel.
// Row-major or NHWC. nearest moves elements of any type; linear and cubic take f32, in f32, and decline
// (Unimplemented) f16 and f64.
#ifndef FUSELAGE_KERNELS_RESIZE_RESIZE_H_
#define FUSELAGE_KERNELS_RESIZE_RESIZE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::resize {

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::resize

#endif  // FUSELAGE_KERNELS_RESIZE_RESIZE_H_

// layer_norm, rms_norm, group_norm and instance_norm of f32: mean and variance of each row in double, in row-major
// order, and each result rounded once to float32; the same bits on every machine and number of threads.
//
// Declines (Unimplemented): operands that are not f32, or without elements; a weight or bias that a run computes.
#ifndef FUSELAGE_KERNELS_NORM_NORM_H_
#define FUSELAGE_KERNELS_NORM_NORM_H_

#include <memory>

#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::norm {

// Any of the four.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// All but layer_norm, which kernels/fp32 and kernels/reproducible register, each its own.
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::norm

#endif  // FUSELAGE_KERNELS_NORM_NORM_H_

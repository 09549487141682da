// int8.layer_norm and int8.rms_norm (ir/ops/int8/norm): a norm of floats, of codes, or of a sum of two floats, that
// ends in a quantize by a scale that is known or by one for each row. A few rows at a time, so that what lies between
// the steps stays in a core's first cache; each step is the kernel that it replaces, so that no bit changes:
// int8.dequantize, add, norm, dynamic_quantize_symmetric, int8.quantize.
//
// Declines (Unimplemented): what is neither f32 nor per-tensor codes, or without elements; scales that are not one for
// each row of the norm; a weight or bias that a run computes. A row that is not finite has no scale: an error.
#ifndef FUSELAGE_KERNELS_INT8_NORM_NORM_H_
#define FUSELAGE_KERNELS_INT8_NORM_NORM_H_

#include <memory>

#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::int8::norm {

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::norm

#endif  // FUSELAGE_KERNELS_INT8_NORM_NORM_H_

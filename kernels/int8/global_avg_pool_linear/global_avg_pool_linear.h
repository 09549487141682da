// int8.global_avg_pool_linear: a linear layer of the mean of each channel (the head of a ResNet).
//
// Composed of the kernels of int8.global_avg_pool and int8.linear, with their bits; the means go from one to the other
// through scratch memory.
//
// Operands and attributes: input u8 or i8 [n, c, h, w]; weight, bias and attributes as int8.linear has them; the mean
// is rounded to pool_out_dtype, pool_out_scale, pool_out_zero_point.
#ifndef FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_H_
#define FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::global_avg_pool_linear {

// What the two kernels are made for.
struct Parts {
  kernels::KernelDesc pool, linear;
};
absl::StatusOr<Parts> PartsOf(const kernels::KernelDesc& desc);

// Composed of any device's kernels. Errors are theirs.
using CreateFunction = absl::FunctionRef<absl::StatusOr<std::unique_ptr<kernels::Kernel>>(const kernels::KernelDesc&)>;
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateOfParts(const kernels::KernelDesc& desc,
                                                               CreateFunction create_pool,
                                                               CreateFunction create_linear);

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

// What Register registers, with a table of the linear layer's variants of the caller's, which must outlive it.
kernels::KernelEntry EntryWith(absl::Span<const linear::Variant> variants);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::global_avg_pool_linear

#endif  // FUSELAGE_KERNELS_INT8_GLOBAL_AVG_POOL_LINEAR_GLOBAL_AVG_POOL_LINEAR_H_

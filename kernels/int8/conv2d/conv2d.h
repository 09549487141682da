// int8.conv2d: convolution of codes with a fused bias, residual and ReLU, in NHWC.
//
//   y = requantize(sum x*w + b32, residual)        kernels/core/requantize.h has the arithmetic
//
// Operands: input u8|i8 [n, ic, h, w], residual u8|i8 of the output's shape (optional). Parameters: weight i8
// [oc, ic/groups, kh, kw], symmetric, per tensor or per axis 0; bias f32 or i32 [oc] (optional). Attributes: stride,
// padding (top, left, bottom, right), dilation, groups, activation (ir/base/activation.h). Output: u8, i8, or f32 (then
// without a residual). Padding is the input's zero point, so it means real zero.
//
// Every variant returns the bytes of the scalar one.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CONV2D_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CONV2D_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/int8/conv2d/variant.h"

namespace fuselage::int8::conv2d {

// All variants, the preferred one last: dispatch, tests and benchmarks iterate this table.
absl::Span<const Variant> Variants();

// The last variant that needs no more than desc.isa and this CPU have, supports the problem and is worthwhile for it.
// InvalidArgument: operands that contradict each other; Unimplemented: a form that no variant runs;
// FailedPrecondition: the accumulator cannot be proven to fit 32 bits.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

// The same with a table of variants of the caller's.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateFrom(absl::Span<const Variant> variants,
                                                            const kernels::KernelDesc& desc);
// The same with the variant given, whatever desc.isa says. FailedPrecondition where it does not support the problem.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const kernels::KernelDesc& desc, const Variant& variant);

// What `make` makes of the checked description, for variants that are not CPU code. The problem lives during the call.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateWith(
    const kernels::KernelDesc& desc,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<kernels::Kernel>>(const Problem&)> make);

// Does that variant read input 0 in place, and the padding from its halo? Then `desc` may be of some rows of a taller
// image, whose other rows take the place of padding.
bool ReadsHalo(const kernels::KernelDesc& desc, const Variant& variant);
// The variant that CreateFrom would choose, where it does.
const Variant* HaloReaderOrNull(absl::Span<const Variant> variants, const kernels::KernelDesc& desc);

// Where that variant would have input 0, whatever desc's placements say; dense where it does not matter.
kernels::Placement WishedPlacement(const kernels::KernelDesc& desc, const Variant& variant);

// What Register registers, with a table of variants of the caller's, which must outlive it.
kernels::KernelEntry EntryOf(absl::Span<const Variant> variants);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CONV2D_H_

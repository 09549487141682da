// int8.conv2d: convolution of codes with a fused bias, residual and activation, in NHWC.
//
//   y = requantize(sum x*w + b32, residual)        kernels/core/requantize.h has the arithmetic
//
// Operands: input u8|i8 [n, ic, h, w], residual u8|i8 of the output's shape (optional). Parameters: weight i8
// [oc, ic/groups, kh, kw], symmetric, per tensor or per axis 0; bias f32 or i32 [oc] (optional); post_scale, post_shift
// f32 [oc] (both or none, behind a function without a clamp; CUDA declines them). Attributes: stride, padding (top,
// left, bottom, right), dilation, groups, activation (ir/base/activation.h). Output: u8, i8, or f32 (then without a
// residual). Padding is the input's zero point, so it means real zero.
//
// Every variant returns the bytes of the scalar one. README.md: which algorithm runs when, and where it is.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CONV2D_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CONV2D_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/core/isa.h"
#include "kernels/core/kernel.h"
#include "kernels/core/pool_window.h"
#include "kernels/core/registry.h"
#include "kernels/int8/conv2d/core/problem.h"

namespace fuselage::int8::conv2d {

struct Variant {
  const char* name;
  kernels::Isa isa;
  bool (*supports)(const Problem&);    // Correct for it, proven; null: for all.
  bool (*worthwhile)(const Problem&);  // Faster than the variants before it in the table, by measurement; null: always.
  std::unique_ptr<Algorithm> (*make)(const Problem&);
  // Where it is fastest if the input lies there; null: dense is as good as any.
  kernels::Placement (*preferred_input_placement)(const Problem&) = nullptr;
  // Can it be a band (see CreateBand)? Null: never.
  bool (*computes_bands)(const Problem&) = nullptr;
};

absl::Span<const Variant> Variants();  // The table of variants.h.
// Its rows that a CPU with desc.isa or a part of it may run desc by: the one that desc asks for, and the preferred one
// of each instruction set.
std::vector<int> RowsFor(const kernels::KernelDesc& desc);

// By the last variant that needs no more than desc.isa and this CPU have, supports the problem and is worthwhile for
// it; by the one that the attribute "variant" names, where that supports it here. Errors: those of ProblemOf, and
// Unimplemented where there is no such variant.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);

// `band`: some rows of the taller image `whole`. By the variant that `whole` would have, if that reads the band where
// it lies, the rows around it and the halo in place of padding; else Unimplemented. With `row_pool` its output has, in
// place of the columns that `band` says, their maxima in these windows: half the codes to compute where sums are
// compared instead.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateBand(absl::Span<const Variant> variants,
                                                            const kernels::KernelDesc& whole, kernels::KernelDesc band,
                                                            const std::optional<kernels::PoolWindow::Axis>& row_pool);

// What Register registers, with a table of variants of the caller's, which must outlive it.
kernels::KernelEntry EntryOf(absl::Span<const Variant> variants);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CONV2D_H_

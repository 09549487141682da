// int8.matmul: y[m, n] = sum_k (a[m, k] - z_a) * (b[k, n] - z_b) on codes, to codes or to f32 (see requantize.h), for
// each pair of matrices of two stacks, which broadcast.
//
// a: u8 or i8 [..., M, K]; b: u8 or i8 [..., K, N]; a vector is a row or a column. Both arrive at run time: each run
// packs them, a as u8, b as i8 codes, and multiplies as int8.linear does, by its variants (a column, as a row, times
// matrices a that lie transposed, where rows of a are short):
//
//   acc = sum a*b - z_b * sum_k a[m, k] - z_a * sum_k (b[k, n] - z_b)        int32, modulo 2^32: the last sum fits
//
// Declines: what MakeEpilogue cannot prove; K above 33,025, whose sums may overflow.
#ifndef FUSELAGE_KERNELS_INT8_MATMUL_MATMUL_H_
#define FUSELAGE_KERNELS_INT8_MATMUL_MATMUL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/core/requantize.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::matmul {

// As a layer of one channel that adds nothing up: its scales are those of all sums.
absl::StatusOr<kernels::Epilogue> CheckedEpilogue(const kernels::KernelDesc& desc);

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc);
// With this variant, whatever desc.isa says. For tests and benchmarks.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const kernels::KernelDesc& desc,
                                                               const linear::Variant& variant);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::matmul

#endif  // FUSELAGE_KERNELS_INT8_MATMUL_MATMUL_H_

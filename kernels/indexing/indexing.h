// Operators that pick, put or order elements by computed positions, or find such: index_select, gather, gather_nd,
// scatter, scatter_nd, one_hot, reverse_sequence, topk, max_pool1d_with_indices, 2d, 3d, nms, nonzero, tril, triu
// (ir/ops/indexing, ir/ops/pool, ir/ops/selection, ir/ops/topk, ir/ops/triangle). All operands are row-major.
//
// Elements are of any type; codes keep their parameters. scatter with a reduction takes f32, i64, i32, u8 and i8, topk
// these, nonzero these and bool, max_pool these but i64; other types are declined (Unimplemented). A position beyond
// its axis is an error of the run, which names it.
#ifndef FUSELAGE_KERNELS_INDEXING_INDEXING_H_
#define FUSELAGE_KERNELS_INDEXING_INDEXING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"

namespace fuselage::indexing {

using KernelOr = absl::StatusOr<std::unique_ptr<kernels::Kernel>>;

KernelOr CreateGather(const kernels::KernelDesc& desc);   // index_select, gather, gather_nd
KernelOr CreateScatter(const kernels::KernelDesc& desc);  // scatter, scatter_nd
KernelOr CreateMaxPool(const kernels::KernelDesc& desc);  // max_pool1d_with_indices, 2d, 3d
KernelOr CreateNms(const kernels::KernelDesc& desc);
KernelOr CreateNonzero(const kernels::KernelDesc& desc);
KernelOr CreateOneHot(const kernels::KernelDesc& desc);
KernelOr CreateReverseSequence(const kernels::KernelDesc& desc);
KernelOr CreateTopk(const kernels::KernelDesc& desc);
KernelOr CreateTriangle(const kernels::KernelDesc& desc);  // tril, triu

KernelOr Create(const kernels::KernelDesc& desc);
void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::indexing

#endif  // FUSELAGE_KERNELS_INDEXING_INDEXING_H_

// The host's side of row_shape.h.
#ifndef FUSELAGE_KERNELS_ATTENTION_CUDA_HOST_H_
#define FUSELAGE_KERNELS_ATTENTION_CUDA_HOST_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/attention/cuda/row_shape.h"
#include "kernels/core/kernel.h"

namespace fuselage::attention::cuda {

// Unimplemented: what AttentionShapeOf declines; 2^31 rows or more, or 65536 blocks of elements.
absl::StatusOr<RowShape> RowShapeOf(const kernels::KernelDesc& desc);
// With a run's mask, which is input 3.
RowShape WithMask(const kernels::Kernel& kernel, RowShape shape, absl::Span<const kernels::ConstBuffer> inputs);

}  // namespace fuselage::attention::cuda

#endif  // FUSELAGE_KERNELS_ATTENTION_CUDA_HOST_H_

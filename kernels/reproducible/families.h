// The families of kernels, one .cc each.
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_FAMILIES_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_FAMILIES_H_

#include "absl/types/span.h"
#include "kernels/core/registry.h"
#include "kernels/reproducible/primitives.h"

namespace fuselage::reproducible {

// For an op whose reference evaluation calls the C library's exp, tanh or erf, which differ between machines: on floats
// its kernel fails (FailedPrecondition) where it would decline, so that nobody falls back on the reference.
kernels::KernelEntry WithoutReference(kernels::KernelEntry entry);

using Table = absl::Span<const Primitives>;

void RegisterConv(Table table, kernels::KernelRegistry& registry);       // conv1d..3d, conv_transpose1d..3d
void RegisterLinear(Table table, kernels::KernelRegistry& registry);     // linear, matmul, gemm
void RegisterNormalize(Table table, kernels::KernelRegistry& registry);  // softmax, layer_norm, batch_norm
void RegisterPool(kernels::KernelRegistry& registry);  // max_pool1d..3d, avg_pool1d..3d, global_avg_pool

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_FAMILIES_H_

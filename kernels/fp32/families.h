// The families of FP32 kernels, one .cc each.
#ifndef FUSELAGE_KERNELS_FP32_FAMILIES_H_
#define FUSELAGE_KERNELS_FP32_FAMILIES_H_

#include "kernels/core/registry.h"

namespace fuselage::fp32 {

void RegisterConv(kernels::KernelRegistry& registry);         // conv1d..3d, conv_transpose1d..3d
void RegisterElementwise(kernels::KernelRegistry& registry);  // relu, ..., add, sub, mul, div
void RegisterLinear(kernels::KernelRegistry& registry);       // linear, matmul, gemm
void RegisterNormalize(kernels::KernelRegistry& registry);    // softmax, layer_norm, batch_norm
void RegisterPool(kernels::KernelRegistry& registry);         // max_pool1d..3d, avg_pool1d..3d, global_avg_pool

}  // namespace fuselage::fp32

#endif  // FUSELAGE_KERNELS_FP32_FAMILIES_H_

// The FP32 path, on oneDNN's CPU engine: convolutions, linear layers, pools and elementwise operators.
//
// Values of rank 4 are NHWC; weights are reordered once, when a kernel is created, to the layout that oneDNN prefers.
// oneDNN's parallel regions run on RunContext::parallel (openmp.h). A kernel holds the memory handles that it passes to
// oneDNN: one run at a time. Its scratch memory is the caller's; oneDNN itself still allocates some hundred bytes of
// bookkeeping per execution, and a packing buffer where it falls back to its GEMM (linear).
#ifndef FUSELAGE_KERNELS_FP32_FP32_H_
#define FUSELAGE_KERNELS_FP32_FP32_H_

#include "kernels/core/registry.h"

namespace fuselage::fp32 {

void Register(kernels::KernelRegistry& registry);

}  // namespace fuselage::fp32

#endif  // FUSELAGE_KERNELS_FP32_FP32_H_

// int8.conv2d and int8.conv2d_max_pool2d on CUDA devices: the bytes of the scalar variants, for every convolution that
// the CPU runs.
//
//   at most four input channels     stem.h, a max pool of small windows included
//   groups of one channel           depthwise.h, or of many pixels a diagonal halo
//   other groups, and one           gemm.h and halo.h: tensor cores, implicit GEMM
//   what 32 bits do not count       direct.h: one thread per output
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_CONV2D_CUDA_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_CONV2D_CUDA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/registry.h"
#include "kernels/int8/conv2d/cuda/plan.h"

namespace fuselage::int8::conv2d::cuda {

// Either op, for the current device, with the constants in its memory; operands and scratch of a run must be there too.
// Compute only launches, on RunContext::stream. Errors: those of conv2d::Create, and the device's.
absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const kernels::KernelDesc& desc,
                                                        const PlanOptions& options = {});

void RegisterCuda(kernels::KernelRegistry& registry);

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_CONV2D_CUDA_H_

// Launching the kernels; conv2d_cuda.cu. Only where there is a toolkit.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_LAUNCH_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_LAUNCH_H_

#include <cuda_runtime_api.h>

#include "kernels/int8/conv2d/cuda/kernel_id.h"

namespace fuselage::int8::conv2d::cuda {

// Before the first launch: lets the current device's kernel have the shared memory that its plans ask for, of what a
// block can have there.
cudaError_t PrepareKernel(const KernelId& id, int most_shared_bytes);

// Errors stay for cudaGetLastError.
void LaunchKernel(const Launch& launch, cudaStream_t stream);

// The same of kernels for Hopper; conv2d_cuda_sm90a.cu.
cudaError_t PrepareForHopper(const KernelId& id, int shared_bytes);
void LaunchForHopper(const Launch& launch, cudaStream_t stream);

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_LAUNCH_H_

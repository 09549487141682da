#include "kernels/int8/conv2d/cuda/kernels.h"
#include "kernels/int8/conv2d/cuda/launch.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

// Without a number of blocks ptxas rather spills than use more registers than it likes.
template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kWarps* kWarpSize, Kernel::kBlocks)
    Conv2d(const __grid_constant__ Params params) {
  Block block;
  Kernel::Run(block, params);
}

}  // namespace

cudaError_t PrepareKernel(const KernelId& id) {
  if (id.family != Family::kGemm) return cudaSuccess;
  // The most that any plan wants: to set less later would take it from another.
  const int shared_bytes = GemmSharedBytes(id, /*residual=*/true, kMostPatchPixels);
  return WithKernel(id, [&](auto kernel) {
    return cudaFuncSetAttribute(Conv2d<decltype(kernel)>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  });
}

void LaunchKernel(const Launch& launch, cudaStream_t stream) {
  const dim3 grid(launch.grid[0], launch.grid[1], launch.grid[2]);
  WithKernel(launch.id, [&](auto kernel) {
    constexpr int kThreads = decltype(kernel)::kWarps * kWarpSize;
    Conv2d<decltype(kernel)><<<grid, kThreads, launch.shared_bytes, stream>>>(launch.params);
  });
}

}  // namespace fuselage::int8::conv2d::cuda

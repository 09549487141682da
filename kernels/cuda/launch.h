// Launch: a kernel of block.h over its grid. Only .cu files include this. As plain C++, for tests, the emulation runs
// it.
#ifndef FUSELAGE_KERNELS_CUDA_LAUNCH_H_
#define FUSELAGE_KERNELS_CUDA_LAUNCH_H_

#include <array>
#include <type_traits>

#include "kernels/cuda/block.h"
#include "kernels/cuda/overlap.h"

namespace fuselage::cuda {

#if defined(__CUDACC__)
// Kernel::kBlocks: how many blocks are to share a multiprocessor. ptxas, unless told, rather spills than use more
// registers than it likes. 0: not told.
template <typename Kernel, typename = void>
constexpr int kBlocksOf = 0;
template <typename Kernel>
constexpr int kBlocksOf<Kernel, std::void_t<decltype(Kernel::kBlocks)>> = Kernel::kBlocks;

// waits: for what came before; or waits_last. Two values, for one would be in a register until the end.
template <typename Kernel>
__global__ void __launch_bounds__(Kernel::kWarps* kWarpSize, kBlocksOf<Kernel>)
    RunKernel(const __grid_constant__ typename Kernel::Params params, const bool waits, const bool waits_last) {
  if constexpr (!kWaitsOf<Kernel>) Warp(waits).WaitForEarlier();
  Block block(waits);
  Kernel::Run(block, params);
  WaitForEarlierLaunches(waits_last);
}
#endif

// An empty grid is no launch. `clusters`: of the blocks of one x and y; on sm_90 and later. Shared memory: at most 48
// KiB, or what RunKernel<Kernel> was given leave for. `stream` is a cudaStream_t, in tests an Emulator*. What goes
// wrong is cudaGetLastError's to say, or Emulator::error's.
template <typename Kernel>
void Launch(std::array<int, 3> grid, int shared_bytes, const typename Kernel::Params& params, void* stream,
            bool clusters = false) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
#if defined(__CUDACC__)
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.attrs = attributes;
  const Overlap now = NextLaunch();
  if (now == Overlap::kBeside) NextLaunch() = Overlap::kNext;
  if (now != Overlap::kNone) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (clusters) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = cluster.val.clusterDim.y = 1;
    cluster.val.clusterDim.z = grid[2];
  }
  config.gridDim = dim3(grid[0], grid[1], grid[2]);
  config.blockDim = Kernel::kWarps * kWarpSize;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  const bool beside = now == Overlap::kBeside;
  cudaLaunchKernelEx(&config, RunKernel<Kernel>, params, !beside, beside);
#else
  static_cast<Emulator*>(stream)->Launch<Kernel>(grid, shared_bytes, params, clusters);
#endif
}

}  // namespace fuselage::cuda

#endif  // FUSELAGE_KERNELS_CUDA_LAUNCH_H_

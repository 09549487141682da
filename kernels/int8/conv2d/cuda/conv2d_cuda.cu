#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/int8/conv2d/cuda/kernels.h"
#include "kernels/int8/conv2d/cuda/launch.h"

namespace fuselage::int8::conv2d::cuda {

cudaError_t PrepareKernel(const KernelId& id, int most_shared_bytes) {
  if (id.family != Family::kGemm) return cudaSuccess;
  // The most that any plan wants: to set less later would take it from another.
  const int shared_bytes =
      std::min(most_shared_bytes, GemmSharedBytes(id, /*residual=*/true, kMostPatchPixels, kMostShortSteps));
  if (IsForHopper(id)) return PrepareForHopper(id, shared_bytes);
  return WithKernel<kFirstHopperTile>(id, [&](auto kernel) {
    return cudaFuncSetAttribute(::fuselage::cuda::RunKernel<decltype(kernel)>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  });
}

void LaunchKernel(const Launch& launch, cudaStream_t stream) {
  if (IsForHopper(launch.id)) return LaunchForHopper(launch, stream);
  WithKernel<kFirstHopperTile>(launch.id, [&](auto kernel) {
    ::fuselage::cuda::Launch<decltype(kernel)>(launch.grid, launch.shared_bytes, launch.params, stream,
                                               launch.clusters());
  });
}

}  // namespace fuselage::int8::conv2d::cuda

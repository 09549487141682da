#include "kernels/cuda/encode_tile_map.h"
#include "kernels/cuda/launch.h"
#include "kernels/int8/conv2d/cuda/kernels.h"
#include "kernels/int8/conv2d/cuda/launch.h"

namespace fuselage::int8::conv2d::cuda {
namespace {

template <typename F>
auto WithKernelForHopper(const KernelId& id, F f) {
  return id.is_signed ? WithTile<int8_t, kFirstHopperTile, kTileCount>(id.tile, f)
                      : WithTile<uint8_t, kFirstHopperTile, kTileCount>(id.tile, f);
}

}  // namespace

cudaError_t PrepareForHopper(const KernelId& id, int shared_bytes) {
  return WithKernelForHopper(id, [&](auto kernel) {
    return cudaFuncSetAttribute(::fuselage::cuda::RunKernel<decltype(kernel)>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  });
}

void LaunchForHopper(const Launch& launch, cudaStream_t stream) {
  Params params = launch.params;
  if (kTiles[launch.id.tile].halo && !::fuselage::cuda::EncodeTileMap(&params.input_pixels)) return;
  WithKernelForHopper(launch.id, [&](auto kernel) {
    ::fuselage::cuda::Launch<decltype(kernel)>(launch.grid, launch.shared_bytes, params, stream);
  });
}

}  // namespace fuselage::int8::conv2d::cuda

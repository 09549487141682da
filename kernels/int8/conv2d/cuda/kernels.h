// All compiled kernels, by KernelId.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNELS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNELS_H_

#include "kernels/int8/conv2d/cuda/depthwise.h"
#include "kernels/int8/conv2d/cuda/direct.h"
#include "kernels/int8/conv2d/cuda/finish.h"
#include "kernels/int8/conv2d/cuda/gemm.h"
#include "kernels/int8/conv2d/cuda/halo.h"
#include "kernels/int8/conv2d/cuda/kernel_id.h"
#include "kernels/int8/conv2d/cuda/pool.h"
#include "kernels/int8/conv2d/cuda/stem.h"

namespace fuselage::int8::conv2d::cuda {

// The tile of kTiles[i].
template <int i>
using TileAt = Tile<kTiles[i].rows, kTiles[i].columns, kTiles[i].warps_down, kTiles[i].warps_across>;

template <typename X, typename F>
auto WithGemm(const KernelId& id, F f) {
  if (id.piece == 1) return f(Gemm<TileAt<kUnalignedTile>, X, 1>());
  if (id.piece == 8) return f(Gemm<TileAt<kUnalignedTile>, X, 8>());
  if (id.diagonal && kTiles[id.tile].halo) return f(Halo<TileAt<kHaloTile>, X, /*kDiagonal=*/true>());
  if (id.diagonal) return f(Gemm<TileAt<kDiagonalTile>, X, 16, /*kDiagonal=*/true>());
  switch (id.tile) {
    case 0: return f(Gemm<TileAt<0>, X, 16>());
    case 1: return f(Gemm<TileAt<1>, X, 16>());
    case 2: return f(Gemm<TileAt<2>, X, 16>());
    case 3: return f(Gemm<TileAt<3>, X, 16>());
    case 4: return f(Gemm<TileAt<4>, X, 16>());
    default: return f(Halo<TileAt<kHaloTile>, X>());
  }
}

static_assert(Halo<TileAt<kHaloTile>, uint8_t>::SharedBytes(true, kMostPatchPixels) <= 99 << 10);

// `patch_pixels` matters to a halo alone, `residual` to all others.
inline int GemmSharedBytes(const KernelId& id, bool residual, int patch_pixels) {
  return WithGemm<uint8_t>(id, [&](auto kernel) { return decltype(kernel)::SharedBytes(residual, patch_pixels); });
}

template <typename X, typename F>
auto WithKernelOf(const KernelId& id, F f) {
  switch (id.family) {
    case Family::kGemm: return WithGemm<X>(id, f);
    case Family::kStem: return f(Stem<X, false>());
    case Family::kPooledStem: return f(Stem<X, true>());
    case Family::kDepthwise: return id.piece == 16 ? f(Depthwise<X, 4>()) : f(Depthwise<X, 1>());
    default: return f(Direct<X>());
  }
}

// f(kernel), with the kernel's struct.
template <typename F>
auto WithKernel(const KernelId& id, F f) {
  if (id.family == Family::kFinish) return f(Finish());
  if (id.family == Family::kPool) return f(Pool());
  return id.is_signed ? WithKernelOf<int8_t>(id, f) : WithKernelOf<uint8_t>(id, f);
}

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNELS_H_

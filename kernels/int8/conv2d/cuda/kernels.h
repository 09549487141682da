// All compiled kernels, by KernelId.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNELS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNELS_H_

#include <type_traits>

#include "kernels/int8/conv2d/cuda/depthwise.h"
#include "kernels/int8/conv2d/cuda/direct.h"
#include "kernels/int8/conv2d/cuda/finish.h"
#include "kernels/int8/conv2d/cuda/gemm.h"
#include "kernels/int8/conv2d/cuda/halo.h"
#include "kernels/int8/conv2d/cuda/hopper_halo.h"
#include "kernels/int8/conv2d/cuda/kernel_id.h"
#include "kernels/int8/conv2d/cuda/pool.h"
#include "kernels/int8/conv2d/cuda/pooled_stem.h"
#include "kernels/int8/conv2d/cuda/short_gemm.h"
#include "kernels/int8/conv2d/cuda/stem.h"

namespace fuselage::int8::conv2d::cuda {

// The tile of kTiles[i].
template <int i>
using TileAt = Tile<kTiles[i].rows, kTiles[i].columns, kTiles[i].warps_down, kTiles[i].warps_across, kTiles[i].hopper,
                    kTiles[i].teams>;

template <int i, typename X>
using HaloAt = std::conditional_t<kTiles[i].hopper, HopperHalo<TileAt<i>, X>, Halo<TileAt<i>, X>>;

template <int i, typename X>
using GemmAt = std::conditional_t<(kTiles[i].teams > 1), ShortGemm<TileAt<i>, X>, Gemm<TileAt<i>, X, 16>>;

// f(kernel), of the tiles from kFirst on, before kEnd.
template <typename X, int kFirst, int kEnd, typename F>
auto WithTile(int tile, F f) {
  if constexpr (kFirst + 1 < kEnd) {
    if (tile != kFirst) return WithTile<X, kFirst + 1, kEnd>(tile, f);
  }
  return f(std::conditional_t<kTiles[kFirst].halo, HaloAt<kFirst, X>, GemmAt<kFirst, X>>());
}

// kEnd: of the tiles that there are.
template <typename X, int kEnd = kTileCount, typename F>
auto WithGemm(const KernelId& id, F f) {
  if (id.piece == 1) return f(Gemm<TileAt<kUnalignedTile>, X, 1>());
  if (id.piece == 8) return f(Gemm<TileAt<kUnalignedTile>, X, 8>());
  if (id.diagonal && kTiles[id.tile].halo) return f(Halo<TileAt<kHaloTile>, X, /*kDiagonal=*/true>());
  if (id.diagonal) return f(Gemm<TileAt<kDiagonalTile>, X, 16, /*kDiagonal=*/true>());
  return WithTile<X, 0, kEnd>(id.tile, f);
}

static_assert(Halo<TileAt<kHaloTile>, uint8_t>::SharedBytes(true, kMostPatchPixels, 0) <= 99 << 10);

inline bool IsForHopper(const KernelId& id) {
  return id.family == Family::kGemm && id.piece == 16 && !id.diagonal && kTiles[id.tile].hopper;
}

// `residual` matters to a Gemm, `patch_pixels` to a halo, `steps`, those of a split, to a ShortGemm.
inline int GemmSharedBytes(const KernelId& id, bool residual, int patch_pixels, int steps) {
  return WithGemm<uint8_t>(id,
                           [&](auto kernel) { return decltype(kernel)::SharedBytes(residual, patch_pixels, steps); });
}

inline int GemmPatchBytes(const KernelId& id, int patch_pixels) {
  return WithGemm<uint8_t>(id, [&](auto kernel) { return decltype(kernel)::PatchBytes(patch_pixels); });
}

template <typename X, int kEnd, typename F>
auto WithKernelOf(const KernelId& id, F f) {
  switch (id.family) {
    case Family::kGemm: return WithGemm<X, kEnd>(id, f);
    case Family::kStem: return f(Stem<X>());
    case Family::kDepthwise: return id.piece == 16 ? f(Depthwise<X, 4>()) : f(Depthwise<X, 1>());
    default: return f(Direct<X>());
  }
}

template <typename F>
auto WithPooledStem(const KernelId& id, F f) {
  const bool few = id.tap_rows == kFewTapRows;
  if (id.stride == 1) return few ? f(PooledStem<kFewTapRows, 1>()) : f(PooledStem<kMostTapRows, 1>());
  return few ? f(PooledStem<kFewTapRows, 2>()) : f(PooledStem<kMostTapRows, 2>());
}

// f(kernel), with the kernel's struct.
template <int kEnd = kTileCount, typename F>
auto WithKernel(const KernelId& id, F f) {
  if (id.family == Family::kFinish) return f(Finish());
  if (id.family == Family::kPool) return f(Pool());
  if (id.family == Family::kPooledStem) return WithPooledStem(id, f);
  return id.is_signed ? WithKernelOf<int8_t, kEnd>(id, f) : WithKernelOf<uint8_t, kEnd>(id, f);
}

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_KERNELS_H_

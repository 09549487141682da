// A step of a product: 64 bytes of its inner dimension, of a block's rows of pixels and columns of weights, multiplied
// from shared memory by ldmatrix and mma.m16n8k32, or where warps multiply in groups by wgmma.m64n64k32 and n128.
//
// There they are rows of kStep bytes, their 16-byte pieces permuted so that neither cp.async nor ldmatrix meets a bank
// twice where eight rows follow each other, wherever the first of them lies: wgmma's swizzle of 64 bytes. In global
// memory weights are packed [steps, padded_channels, kStep]: what a block fetches in a step is contiguous.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEPS_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEPS_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// X: uint8_t or int8_t, the input's codes. kDiagonal: each 32 of a tile's columns need the same 32 of a step alone; all
// other weights are 0.
template <typename Tile, typename X, bool kDiagonal>
struct Steps {
  static constexpr int kPieces = kStep / 16;  // Of a row.
  // Halves of a step that a warp multiplies.
  static constexpr int kHalves = kDiagonal && Tile::kColumnFragments <= 4 ? 1 : 2;
  static_assert(!kDiagonal || (Tile::kColumns == kStep && !Tile::kInGroups));
  static constexpr int kWeightBytes = Tile::kColumns * kStep;
  // Has a warp few products in a step? Then registers have room for both halves before another step is fetched.
  static constexpr bool kSmall = Tile::kRowFragments * Tile::kColumnFragments <= 4;

  // Where piece `column` of a row lies. ldmatrix takes eight rows at once, 512 bytes: the permutation spreads them over
  // all banks. Eight rows on it is 8 * kStep more; two columns on, from the first two, it has another bit 5.
  FUSELAGE_DEVICE static uint32_t Place(int row, int column) { return row * kStep + ((column ^ (row >> 1 & 3)) << 4); }

  // Where a thread's weights of a step are, and of the next one padded_channels * kStep further on.
  FUSELAGE_DEVICE static const int8_t* Weights(const Params& p, Thread thread, int step, int first_channel) {
    return p.weight + (int64_t{step} * p.padded_channels + first_channel) * kStep + Tile::IndexOf(thread) * 16;
  }
  FUSELAGE_DEVICE static void FetchWeights(Thread thread, const int8_t* from, uint32_t to) {
    static_assert(Tile::kColumns * kPieces % Tile::kThreads == 0);
    FUSELAGE_UNROLL
    for (int i = 0; i < Tile::kColumns * kPieces / Tile::kThreads; ++i) {
      const int piece = Tile::IndexOf(thread) + i * Tile::kThreads;
      thread.CopyAsync<16>(to + Place(piece / kPieces, piece % kPieces), from + i * Tile::kThreads * 16);
    }
  }

  // The same by one thread, of weights that the host has permuted, as part of what `barrier` stands for.
  FUSELAGE_DEVICE static void StartWeights(const Params& p, Thread thread, int step, int first_channel, uint32_t to,
                                           uint32_t barrier) {
    thread.CopyBulk(to, p.weight + (int64_t{step} * p.padded_channels + first_channel) * kStep, kWeightBytes, barrier);
  }

  using Rows = Lanes<Vector<uint32_t, 4>>[Tile::kRowFragments];

  // place(thread, i, half): where the piece is that the thread's lane gives ldmatrix of row fragment i, in that half of
  // the step: of row lane % 16, piece 2 * half + lane / 16. The weights are at `weights`. Calls fetch(), which starts
  // to fetch another step, where it takes least time: while a group's products, or what a warp multiplies, are on
  // their way. A group's sums begin with what does not add, others have been cleared.
  template <typename PlaceOfRow, typename Fetch>
  FUSELAGE_DEVICE static void Multiply(Warp warp, PlaceOfRow place, uint32_t weights, bool adds,
                                       typename Tile::Accumulators& accumulators, Fetch fetch) {
    if constexpr (Tile::kInGroups) {
      Rows a[2];
      StartProducts(warp, place, weights, adds, a, accumulators);
      fetch();
      warp.template WaitForProducts<0>();
    } else {
      MultiplyByWarp(warp, place, weights, accumulators, fetch);
    }
  }

  // What a group's Multiply starts, as kPending groups that WaitForProducts waits for: only then `a` may be touched
  // again. The rows of the second half are loaded while the first is multiplied. Unless it adds the sums begin with it.
  static constexpr int kPending = 2;
  template <typename PlaceOfRow>
  FUSELAGE_DEVICE static void StartProducts(Warp warp, PlaceOfRow place, uint32_t weights, bool adds, Rows (&a)[2],
                                            typename Tile::Accumulators& accumulators) {
    FUSELAGE_UNROLL
    for (int half = 0; half < 2; ++half) {
      LoadRows(warp, place, half, a[half]);
      warp.BeginProducts();
      FUSELAGE_UNROLL
      for (int i = 0; i < Tile::kRowFragments; ++i) {
        warp.template MultiplyInGroup<X>(a[half][i], weights + 32 * half, adds || half > 0, accumulators.fragments[i]);
      }
      warp.CommitProducts();
    }
  }

 private:
  // What a warp multiplies of a half.
  struct Half {
    Rows a;
    Lanes<uint32_t> b[Tile::kColumnFragments][2];
  };
  // Does column fragment j need that half of the step?
  FUSELAGE_DEVICE static constexpr bool Meets(int half, int j) { return !kDiagonal || kHalves == 1 || j / 4 == half; }

  template <typename PlaceOfRow, typename Fetch>
  FUSELAGE_DEVICE static void MultiplyByWarp(Warp warp, PlaceOfRow place, uint32_t weights,
                                             typename Tile::Accumulators& accumulators, Fetch fetch) {
    const auto half_of = [&](int n) { return kHalves == 2 ? n : Tile::Column(warp) / 32; };
    Half halves[kHalves];
    FUSELAGE_UNROLL
    for (int n = 0; kSmall && n < kHalves; ++n) Load(warp, place, weights, half_of(n), halves[n]);
    fetch();
    FUSELAGE_UNROLL
    for (int n = 0; n < kHalves; ++n) {
      if (!kSmall) Load(warp, place, weights, half_of(n), halves[n]);
      FUSELAGE_UNROLL
      for (int i = 0; i < Tile::kRowFragments; ++i) {
        FUSELAGE_UNROLL
        for (int j = 0; j < Tile::kColumnFragments; ++j) {
          if (!Meets(half_of(n), j)) continue;
          warp.template MultiplyCodes<X>(halves[n].a[i], halves[n].b[j][0], halves[n].b[j][1],
                                         &accumulators.fragments[i][j]);
        }
      }
    }
  }

  template <typename PlaceOfRow>
  FUSELAGE_DEVICE static void Load(Warp warp, PlaceOfRow place, uint32_t weights, int half, Half& to) {
    LoadRows(warp, place, half, to.a);
    FUSELAGE_UNROLL
    for (int j = 0; j < Tile::kColumnFragments; j += 2) {
      if (!Meets(half, j)) continue;
      Lanes<uint32_t> offsets;
      Lanes<Vector<uint32_t, 4>> pair;
      warp.ForThreads([&](Thread thread) {
        const int row = Tile::Column(warp) + thread.lane() / 16 * 8 + thread.lane() % 8;
        offsets[thread] = weights + Place(row, thread.lane() / 8 % 2 ^ 2 * half) + 8 * j * kStep;
      });
      warp.LoadMatrices(offsets, &pair);
      warp.ForThreads([&](Thread thread) {
        for (int i = 0; i < 4; ++i) to.b[j + i / 2][i % 2][thread] = pair[thread].values[i];
      });
    }
  }

  template <typename PlaceOfRow>
  FUSELAGE_DEVICE static void LoadRows(Warp warp, PlaceOfRow place, int half, Rows& a) {
    FUSELAGE_UNROLL
    for (int i = 0; i < Tile::kRowFragments; ++i) {
      Lanes<uint32_t> offsets;
      warp.ForThreads([&](Thread thread) { offsets[thread] = place(thread, i, half); });
      warp.LoadMatrices(offsets, &a[i]);
    }
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEPS_H_

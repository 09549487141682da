// A convolution of at most four input channels, such as a network's first: with 16-byte pieces most of mma's inner
// dimension would be zeros. Here it holds eight pixels of four channels, so that one k32 step is a row of up to eight
// taps.
//
// A block computes 8 x 16 output pixels by 64 channels. It keeps their input pixels as words of four channels in shared
// memory: a fragment register of mma is one such word, so windows overlap without being copied. Weights are packed
// [padded_channels, kernel_height, 8, 4], with zeros past the last tap and channel. The grid is
// [batch * tiles down * tiles across, column tiles].
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// Shared memory of a Stem. Weights come first: rows are an odd number of 16-byte pieces apart, so that ldmatrix meets
// no bank twice.
struct StemLayout {
  static constexpr int kTileHeight = 8, kTileWidth = 16, kTileChannels = 64;
  static constexpr int kTaps = 8;  // Of a row.
  static constexpr int kRowBytes = 4 * kTaps;

  FUSELAGE_HOST_DEVICE explicit StemLayout(const Params& p)
      : weight_pitch(p.kernel_height * kRowBytes + 16),
        patch_height((kTileHeight - 1) * p.stride_y + (p.kernel_height - 1) * p.dilation_y + 1),
        patch_width((kTileWidth - 1) * p.stride_x + (kTaps - 1) * p.dilation_x + 1) {}

  FUSELAGE_HOST_DEVICE int patch() const { return kTileChannels * weight_pitch; }  // Its offset.
  FUSELAGE_HOST_DEVICE int64_t bytes() const { return patch() + int64_t{4} * patch_height * patch_width; }

  int weight_pitch;
  int patch_height, patch_width;
};

template <typename X>
struct Stem {
  using Params = cuda::Params;
  using Tile = cuda::Tile<StemLayout::kTileHeight * StemLayout::kTileWidth, StemLayout::kTileChannels, 4, 1>;
  static constexpr int kWarps = Tile::kWarps;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const StemLayout layout(p);
    const int tiles_across = (p.out_width + StemLayout::kTileWidth - 1) / StemLayout::kTileWidth;
    const int tiles_down = (p.out_height + StemLayout::kTileHeight - 1) / StemLayout::kTileHeight;
    const int first_x = block.x() % tiles_across * StemLayout::kTileWidth;
    const int first_y = block.x() / tiles_across % tiles_down * StemLayout::kTileHeight;
    const int image = block.x() / tiles_across / tiles_down;
    const int first_channel = block.y() * StemLayout::kTileChannels;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        FetchWeights(p, layout, thread, first_channel);
        FetchPatch(p, layout, thread, image, first_y, first_x);
        FUSELAGE_UNROLL
        for (int i = 0; i < Tile::kRowFragments; ++i) {
          FUSELAGE_UNROLL
          for (int j = 0; j < Tile::kColumnFragments; ++j) accumulators[warp].fragments[i][j][thread] = {};
        }
      });
      warp.CommitCopies();
      warp.template WaitForCopies<0>();
    });
    block.Phase([&](Warp warp) {
      for (int tap_y = 0; tap_y < p.kernel_height; ++tap_y) Multiply(p, layout, warp, tap_y, accumulators[warp]);
    });
    StoreOutput<Tile>(block, p, first_channel, accumulators, [&](int row) {
      const int y = first_y + row / StemLayout::kTileWidth, x = first_x + row % StemLayout::kTileWidth;
      return y < p.out_height && x < p.out_width ? (int64_t{image} * p.out_height + y) * p.out_width + x : int64_t{-1};
    });
  }

 private:
  FUSELAGE_DEVICE static void FetchWeights(const Params& p, const StemLayout& layout, Thread thread,
                                           int first_channel) {
    const int pieces = p.kernel_height * StemLayout::kRowBytes / 16;
    const int8_t* from = p.weight + int64_t{first_channel} * pieces * 16;
    for (int i = thread.index(); i < StemLayout::kTileChannels * pieces; i += Tile::kThreads) {
      thread.CopyAsync16(i / pieces * layout.weight_pitch + i % pieces * 16, from + i * 16);
    }
  }

  FUSELAGE_DEVICE static void FetchPatch(const Params& p, const StemLayout& layout, Thread thread, int image,
                                         int first_y, int first_x) {
    const uint8_t zero_point = thread.Load(p.padding);
    for (int i = thread.index(); i < layout.patch_height * layout.patch_width; i += Tile::kThreads) {
      const int y = first_y * p.stride_y - p.pad_top + i / layout.patch_width;
      const int x = first_x * p.stride_x - p.pad_left + i % layout.patch_width;
      const bool inside = y >= 0 && y < p.in_height && x >= 0 && x < p.in_width;
      const uint8_t* from = p.input + ((int64_t{image} * p.in_height + y) * p.in_width + x) * p.in_channels;
      Vector<uint8_t, 4> pixel;
      FUSELAGE_UNROLL
      for (int c = 0; c < 4; ++c) {
        pixel.values[c] = inside && c < p.in_channels ? thread.Load(from + c) : zero_point;
      }
      thread.StoreShared(layout.patch() + 4 * i, pixel);
    }
  }

  // Adds one row of taps. The rows of fragment i of a warp are the pixels of one row of the tile.
  FUSELAGE_DEVICE static void Multiply(const Params& p, const StemLayout& layout, Warp warp, int tap_y,
                                       typename Tile::Accumulators& accumulators) {
    Lanes<Vector<uint32_t, 4>> a[Tile::kRowFragments];
    warp.ForThreads([&](Thread thread) {
      FUSELAGE_UNROLL
      for (int i = 0; i < Tile::kRowFragments; ++i) {
        const int line = (Tile::Row(warp) / 16 + i) * p.stride_y + tap_y * p.dilation_y;
        FUSELAGE_UNROLL
        for (int r = 0; r < 4; ++r) {
          const int x = thread.lane() / 4 + 8 * (r % 2), tap_x = thread.lane() % 4 + 4 * (r / 2);
          const int word = line * layout.patch_width + x * p.stride_x + tap_x * p.dilation_x;
          a[i][thread].values[r] = thread.LoadShared<uint32_t>(layout.patch() + 4 * word);
        }
      }
    });
    FUSELAGE_UNROLL
    for (int j = 0; j < Tile::kColumnFragments; j += 2) {
      Lanes<uint32_t> offsets, b[4];
      Lanes<Vector<uint32_t, 4>> pair;
      warp.ForThreads([&](Thread thread) {
        const int row = Tile::Column(warp) + 8 * j + thread.lane() / 16 * 8 + thread.lane() % 8;
        offsets[thread] = row * layout.weight_pitch + tap_y * StemLayout::kRowBytes + thread.lane() / 8 % 2 * 16;
      });
      warp.LoadMatrices(offsets, &pair);
      warp.ForThreads([&](Thread thread) {
        for (int i = 0; i < 4; ++i) b[i][thread] = pair[thread].values[i];
      });
      FUSELAGE_UNROLL
      for (int i = 0; i < Tile::kRowFragments; ++i) {
        warp.template MultiplyCodes<X>(a[i], b[0], b[1], &accumulators.fragments[i][j]);
        warp.template MultiplyCodes<X>(a[i], b[2], b[3], &accumulators.fragments[i][j + 1]);
      }
    }
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_

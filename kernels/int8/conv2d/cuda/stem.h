// A convolution of at most four input channels, such as a network's first: with 16-byte pieces most of mma's inner
// dimension would be zeros. Here it holds eight pixels of four channels, so that one k32 step is a row of up to eight
// taps.
//
// A block computes 8 x 16 output pixels by 64 channels. It keeps their input pixels as words of four channels in shared
// memory: a fragment register of mma is one such word, so windows overlap without being copied. Weights are packed
// [padded_channels, kernel_height, 8, 4], with zeros past the last tap and channel. The grid is
// [batch * tiles down * tiles across, column tiles].
//
// With a max pool behind it the block computes 16 x 16 pixels, and of them the pooled ones that see no others: for
// ResNet's windows of 3 x 3 in steps of 2 that is 7 x 7, of 14 x 14 that no other block needs.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// How a Stem cuts the output, and its shared memory. Weights come first: rows are an odd number of 16-byte pieces
// apart, so that ldmatrix meets no bank twice.
struct StemLayout {
  static constexpr int kTileWidth = 16, kTileChannels = 64;
  static constexpr int kTaps = 8;  // Of a row.
  static constexpr int kRowBytes = 4 * kTaps;
  FUSELAGE_HOST_DEVICE static constexpr int TileHeight(bool pooled) { return pooled ? 16 : 8; }

  FUSELAGE_HOST_DEVICE StemLayout(const Params& p, bool pooled)
      : weight_pitch(p.kernel_height * kRowBytes + 16),
        patch_height((TileHeight(pooled) - 1) * p.stride_y + (p.kernel_height - 1) * p.dilation_y + 1),
        patch_width((kTileWidth - 1) * p.stride_x + (kTaps - 1) * p.dilation_x + 1),
        step_y(pooled ? Windows(TileHeight(true), p.pool.kernel_y, p.pool.stride_y, p.pool.dilation_y) : 8),
        step_x(pooled ? Windows(kTileWidth, p.pool.kernel_x, p.pool.stride_x, p.pool.dilation_x) : kTileWidth),
        down(CeilDiv(pooled ? p.pool.out_height : p.out_height, step_y)),
        across(CeilDiv(pooled ? p.pool.out_width : p.out_width, step_x)) {}

  FUSELAGE_HOST_DEVICE int patch() const { return kTileChannels * weight_pitch; }  // Its offset.
  FUSELAGE_HOST_DEVICE int64_t bytes() const { return patch() + int64_t{4} * patch_height * patch_width; }

  int weight_pitch;
  int patch_height, patch_width;
  int step_y, step_x;  // Outputs of a tile, pooled ones where there is a pool; 0: a window is larger than a tile.
  int down, across;    // Tiles of an image.

 private:
  // That lie within `extent`.
  FUSELAGE_HOST_DEVICE static int Windows(int extent, int kernel, int stride, int dilation) {
    const int room = extent - 1 - (kernel - 1) * dilation;
    return room < 0 ? 0 : room / stride + 1;
  }
  FUSELAGE_HOST_DEVICE static int CeilDiv(int a, int b) { return b == 0 ? 0 : (a + b - 1) / b; }
};

template <typename X, bool kPooled>
struct Stem {
  using Params = cuda::Params;
  static constexpr int kTileHeight = StemLayout::TileHeight(kPooled);
  using Tile = cuda::Tile<kTileHeight * StemLayout::kTileWidth, StemLayout::kTileChannels, kTileHeight / 2, 1>;
  static constexpr int kWarps = Tile::kWarps, kBlocks = Tile::kBlocks;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const StemLayout layout(p, kPooled);
    const int first_x = block.x() % layout.across * layout.step_x;
    const int first_y = block.x() / layout.across % layout.down * layout.step_y;
    const int image = block.x() / layout.across / layout.down;
    const int first_channel = block.y() * StemLayout::kTileChannels;
    // Of the convolution's pixels; outside of them where the first window reaches into the pool's padding.
    const int origin_x = kPooled ? first_x * p.pool.stride_x - p.pool.pad_left : first_x;
    const int origin_y = kPooled ? first_y * p.pool.stride_y - p.pool.pad_top : first_y;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        FetchWeights(p, layout, thread, first_channel);
        FetchPatch(p, layout, thread, image, origin_y, origin_x);
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
    if constexpr (kPooled) {
      StageCodes<Tile, false>(block, p, /*staging=*/0, first_channel, accumulators);
      block.Phase([&](Warp warp) {
        warp.ForThreads([&](Thread thread) {
          constexpr int kChunks = StemLayout::kTileChannels / 16;
          for (int i = thread.index(); i < layout.step_y * layout.step_x * kChunks; i += Tile::kThreads) {
            const int y = i / kChunks / layout.step_x, x = i / kChunks % layout.step_x, column = i % kChunks * 16;
            if (first_y + y >= p.pool.out_height || first_x + x >= p.pool.out_width) continue;
            if (first_channel + column >= p.out_channels) continue;
            const auto codes = MaxOfWindow(p, thread, origin_y, origin_x, y, x, column);
            const int64_t pixel = (int64_t{image} * p.pool.out_height + first_y + y) * p.pool.out_width + first_x + x;
            StoreChannels(p, thread, first_channel + column, codes,
                          static_cast<uint8_t*>(p.output) + pixel * p.out_channels + first_channel + column);
          }
        });
      });
    } else {
      const auto pixel = [&](int row) {
        const int y = first_y + row / StemLayout::kTileWidth, x = first_x + row % StemLayout::kTileWidth;
        return y < p.out_height && x < p.out_width ? (int64_t{image} * p.out_height + y) * p.out_width + x
                                                   : int64_t{-1};
      };
      if (p.residual != nullptr) {
        block.Phase([&](Warp warp) {
          warp.ForThreads([&](Thread thread) { FetchResidual<Tile>(p, thread, /*staging=*/0, first_channel, pixel); });
          warp.CommitCopies();
          warp.template WaitForCopies<0>();
        });
      }
      StoreOutput<Tile>(block, p, /*staging=*/0, first_channel, accumulators, pixel);
    }
  }

 private:
  FUSELAGE_DEVICE static void FetchWeights(const Params& p, const StemLayout& layout, Thread thread,
                                           int first_channel) {
    const int pieces = p.kernel_height * StemLayout::kRowBytes / 16;
    const int8_t* from = p.weight + int64_t{first_channel} * pieces * 16;
    for (int i = thread.index(); i < StemLayout::kTileChannels * pieces; i += Tile::kThreads) {
      thread.CopyAsync<16>(i / pieces * layout.weight_pitch + i % pieces * 16, from + i * 16);
    }
  }

  FUSELAGE_DEVICE static void FetchPatch(const Params& p, const StemLayout& layout, Thread thread, int image,
                                         int origin_y, int origin_x) {
    const uint8_t zero_point = thread.LoadConstant(p.padding);
    FUSELAGE_UNROLL_BY_4
    for (int i = thread.index(); i < layout.patch_height * layout.patch_width; i += Tile::kThreads) {
      const int y = origin_y * p.stride_y - p.pad_top + i / layout.patch_width;
      const int x = origin_x * p.stride_x - p.pad_left + i % layout.patch_width;
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

  // Of sixteen channels, from the codes in shared memory; (y, x) is the window in the tile.
  FUSELAGE_DEVICE static Vector<uint8_t, 16> MaxOfWindow(const Params& p, Thread thread, int origin_y, int origin_x,
                                                         int y, int x, int column) {
    const uint32_t flip = p.output_flip * 0x01010101u;
    Vector<uint32_t, 4> largest = {};
    for (int tap_y = 0; tap_y < p.pool.kernel_y; ++tap_y) {
      const int line = y * p.pool.stride_y + tap_y * p.pool.dilation_y;
      if (origin_y + line < 0 || origin_y + line >= p.out_height) continue;
      for (int tap_x = 0; tap_x < p.pool.kernel_x; ++tap_x) {
        const int pixel = x * p.pool.stride_x + tap_x * p.pool.dilation_x;
        if (origin_x + pixel < 0 || origin_x + pixel >= p.out_width) continue;
        const int row = line * StemLayout::kTileWidth + pixel;
        const auto codes = thread.LoadShared<Vector<uint32_t, 4>>(row * Tile::kStagingPitch + column);
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          largest.values[i] = ::fuselage::cuda::MaxOfBytes(largest.values[i], codes.values[i] ^ flip);
        }
      }
    }
    Vector<uint8_t, 16> result;
    FUSELAGE_UNROLL
    for (int i = 0; i < 16; ++i) result.values[i] = static_cast<uint8_t>((largest.values[i / 4] ^ flip) >> i % 4 * 8);
    return result;
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

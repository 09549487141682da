// A convolution of at most four input channels, such as a network's first: with 16-byte pieces most of mma's inner
// dimension would be zeros. Here it holds eight pixels of four channels, so that one k32 step is a row of up to eight
// taps.
//
// A block computes 8 x 16 output pixels by 64 channels. Weights are packed [column tiles, kernel_height, kWeightBytes],
// with zeros past the last tap and channel. The grid is [tiles across, tiles down, batch * column tiles].
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/stem_layout.h"
#include "kernels/int8/conv2d/cuda/stem_patch.h"

namespace fuselage::int8::conv2d::cuda {

template <typename X>
struct Stem {
  using Params = cuda::Params;
  using Tile = cuda::Tile<StemLayout::kTileHeight * StemLayout::kTileWidth, StemLayout::kTileChannels,
                          StemLayout::kTileHeight / 2, 1>;
  static constexpr int kWarps = Tile::kWarps, kBlocks = Tile::kBlocks;
  static constexpr bool kWaits = true;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const StemLayout& layout = p.stem;
    const int column_tiles = p.padded_channels / StemLayout::kTileChannels;
    const int image = static_cast<int>(layout.column_tiles.Divide(block.z()));
    const int first_channel = (block.z() - image * column_tiles) * StemLayout::kTileChannels;
    const int first_x = block.x() * StemLayout::kTileWidth, first_y = block.y() * StemLayout::kTileHeight;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        FetchWeights(p, thread, first_channel);
        accumulators[warp].Clear(thread);
      });
      warp.WaitForEarlier();
      warp.ForThreads([&](Thread thread) {
        const StemFetch<Tile::kThreads> fetch(p, layout.patch, image, first_y * p.stride_y - p.pad_top,
                                              first_x * p.stride_x - p.pad_left, /*flip=*/0);
        fetch.Run(thread, layout.weight_bytes());
      });
      warp.CommitCopies();
      warp.template WaitForCopies<0>();
    });
    block.Phase([&](Warp warp) {
      if (p.dilation_x > 1) {
        Multiply<true>(p, warp, accumulators[warp]);
      } else {
        Multiply<false>(p, warp, accumulators[warp]);
      }
    });
    const auto pixel = [&](int row) {
      const int y = first_y + row / StemLayout::kTileWidth, x = first_x + row % StemLayout::kTileWidth;
      return y < p.out_height && x < p.out_width ? (int64_t{image} * p.out_height + y) * p.out_width + x : int64_t{-1};
    };
    if (p.float_bias != nullptr) return StoreFloats<Tile>(block, p, first_channel, accumulators, pixel);
    if (p.residual != nullptr) {
      block.Phase([&](Warp warp) {
        warp.ForThreads([&](Thread thread) { FetchResidual<Tile>(p, thread, /*staging=*/0, first_channel, pixel); });
        warp.CommitCopies();
        warp.template WaitForCopies<0>();
      });
    }
    const auto constants = [&](Thread thread, int column) {
      return LoadChannelPair(p, thread, first_channel + column);
    };
    StoreCodes<Tile>(block, p, /*staging=*/0, first_channel, constants, accumulators, pixel);
  }

 private:
  FUSELAGE_DEVICE static void FetchWeights(const Params& p, Thread thread, int first_channel) {
    const int8_t* from = p.weight + int64_t{first_channel} * p.kernel_height * StemTaps::kBytes;
    FUSELAGE_NO_UNROLL
    for (int i = 16 * thread.index(); i < p.stem.weight_bytes(); i += 16 * Tile::kThreads)
      thread.CopyAsync<16>(i, from + i);
  }

  // Adds all rows of taps. The rows of fragment i of a warp are the pixels of one row of the tile. kDilated: along
  // lines.
  template <bool kDilated>
  FUSELAGE_DEVICE static void Multiply(const Params& p, Warp warp, typename Tile::Accumulators& accumulators) {
    // Where a thread's pixels and weights are in shared memory, of the first row of taps.
    Lanes<Vector<uint32_t, 2>> pixels[Tile::kRowFragments];
    Lanes<uint32_t> weights;
    const uint32_t line = 4 * p.stem.patch.width, apart = kDilated ? 4 * p.dilation_x : 4;
    warp.ForThreads([&](Thread thread) {
      FUSELAGE_UNROLL
      for (int i = 0; i < Tile::kRowFragments; ++i) {
        const int y = Tile::Row(warp) / 16 + i, x = thread.lane() / 4, tap_x = thread.lane() % 4 * 2;
        const uint32_t first =
            p.stem.weight_bytes() + y * p.stride_y * line + 4 * (x * p.stride_x + tap_x * p.dilation_x);
        pixels[i][thread] = {{first, first + 4 * 8 * p.stride_x}};
      }
      weights[thread] = StemLayout::WeightPlace(thread.lane() / 16 * 8 + thread.lane() % 8, thread.lane() / 8 % 2);
    });
    static_assert(Tile::kColumnFragments * 8 == StemLayout::kTileChannels);
    int tap_y = 0;
    FUSELAGE_NO_UNROLL
    do {
      Lanes<Vector<uint32_t, 4>> a[Tile::kRowFragments];
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < Tile::kRowFragments; ++i) {
          FUSELAGE_UNROLL
          for (int half = 0; half < 2; ++half) {
            const uint32_t at = pixels[i][thread].values[half] + tap_y * p.dilation_y * line;
            a[i][thread].values[half] = thread.LoadShared<uint32_t>(at);
            a[i][thread].values[half + 2] = thread.LoadShared<uint32_t>(at + apart);
          }
        }
      });
      FUSELAGE_UNROLL
      for (int j = 0; j < Tile::kColumnFragments; j += 2) {
        Lanes<uint32_t> offsets, b[4];
        Lanes<Vector<uint32_t, 4>> pair;
        warp.ForThreads([&](Thread thread) {
          offsets[thread] = weights[thread] + tap_y * StemLayout::kWeightBytes + 8 * j * StemTaps::kBytes;
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
    } while (++tap_y < p.kernel_height);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_

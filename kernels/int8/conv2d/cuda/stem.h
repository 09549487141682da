// A convolution of at most four input channels, such as a network's first: with 16-byte pieces most of mma's inner
// dimension would be zeros. Here it holds eight pixels of four channels, so that one k32 step is a row of up to eight
// taps.
//
// A block computes 8 x 16 output pixels by 64 channels. It keeps their input pixels as words of four channels in shared
// memory: a fragment register of mma is one such word, so windows overlap without being copied. Weights are packed
// [column tiles, kernel_height, kWeightBytes], with zeros past the last tap and channel. The grid is [tiles across,
// tiles down, batch * column tiles].
//
// With a max pool behind it the block computes 16 x 16 pixels, and of them the pooled ones that see no others: for
// ResNet's windows of 3 x 3 in steps of 2 that is 7 x 7, of 14 x 14 that no other block needs. It takes the largest of
// the sums, and makes codes of those alone: a larger sum has no smaller code.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_

#include <cstdint>
#include <type_traits>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/stem_layout.h"

namespace fuselage::int8::conv2d::cuda {

template <typename X, bool kPooled>
struct Stem {
  using Params = cuda::Params;
  static constexpr int kTileHeight = StemLayout::TileHeight(kPooled);
  using Tile = cuda::Tile<kTileHeight * StemLayout::kTileWidth, StemLayout::kTileChannels, kTileHeight / 2, 1>;
  static constexpr int kWarps = Tile::kWarps, kBlocks = Tile::kBlocks;
  static constexpr bool kWaits = true;

  static_assert(2 * kSumColumns == StemLayout::kTileChannels);

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const StemLayout& layout = p.stem;
    const int column_tiles = p.padded_channels / StemLayout::kTileChannels;
    const int image = static_cast<int>(layout.column_tiles.Divide(block.z()));
    const int first_channel = (block.z() - image * column_tiles) * StemLayout::kTileChannels;
    const int first_x = block.x() * layout.step_x, first_y = block.y() * layout.step_y;
    // Of the convolution's pixels; outside of them where the first window reaches into the pool's padding.
    const int origin_x = kPooled ? first_x * p.pool.stride_x - p.pool.pad_left : first_x;
    const int origin_y = kPooled ? first_y * p.pool.stride_y - p.pool.pad_top : first_y;
    PerWarp<typename Tile::Accumulators, kWarps> accumulators;

    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        FetchWeights(p, thread, first_channel);
        accumulators[warp].Clear(thread);
      });
      warp.WaitForEarlier();
      warp.ForThreads([&](Thread thread) { FetchPatch(p, thread, image, origin_y, origin_x); });
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
    if constexpr (kPooled) {
      const auto pool = [&](auto half) {
        block.Phase([&](Warp warp) {
          warp.ForThreads(
              [&](Thread thread) { StageSums<half.value>(p, warp, thread, origin_y, origin_x, accumulators[warp]); });
        });
        block.Phase([&](Warp warp) {
          warp.ForThreads([&](Thread thread) {
            PoolSums(p, thread, image, first_y, first_x, first_channel + half.value * kSumColumns);
          });
        });
      };
      pool(std::integral_constant<int, 0>());
      pool(std::integral_constant<int, 1>());
    } else {
      const auto pixel = [&](int row) {
        const int y = first_y + row / StemLayout::kTileWidth, x = first_x + row % StemLayout::kTileWidth;
        return y < p.out_height && x < p.out_width ? (int64_t{image} * p.out_height + y) * p.out_width + x
                                                   : int64_t{-1};
      };
      if (p.float_bias != nullptr) return StoreFloats<Tile>(block, p, first_channel, accumulators, pixel);
      if (p.residual != nullptr) {
        block.Phase([&](Warp warp) {
          warp.ForThreads([&](Thread thread) { FetchResidual<Tile>(p, thread, /*staging=*/0, first_channel, pixel); });
          warp.CommitCopies();
          warp.template WaitForCopies<0>();
        });
      }
      StoreCodes<Tile>(block, p, /*staging=*/0, first_channel, accumulators, pixel);
    }
  }

 private:
  FUSELAGE_DEVICE static void FetchWeights(const Params& p, Thread thread, int first_channel) {
    const int8_t* from = p.weight + int64_t{first_channel} * p.kernel_height * StemLayout::kRowBytes;
    FUSELAGE_NO_UNROLL
    for (int i = 16 * thread.index(); i < p.stem.patch(); i += 16 * Tile::kThreads) thread.CopyAsync<16>(i, from + i);
  }

  // Four pixels of a line at once.
  FUSELAGE_DEVICE static void FetchPatch(const Params& p, Thread thread, int image, int origin_y, int origin_x) {
    const StemLayout& layout = p.stem;
    const uint32_t padding = ::fuselage::cuda::Splat(p.padding);
    const int64_t first = int64_t{image} * p.in_height * p.in_width * p.in_channels;
    const uint8_t* input = p.input + first / 4 * 4;
    const int past = static_cast<int>(first % 4);
    const int first_y = origin_y * p.stride_y - p.pad_top, first_x = origin_x * p.stride_x - p.pad_left;
    const int fours = layout.patch_width / 4;
    for (int i = thread.index(); i < layout.patch_height * fours; i += Tile::kThreads) {
      const int line = static_cast<int>(layout.patch_fours.Divide(i));
      const int y = first_y + line, x = first_x + 4 * (i - line * fours);
      const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(p.in_height);
      const uint32_t to = layout.patch() + 16 * i;
      if (layout.three_in_words && inside && x >= 0 && x + 4 <= p.in_width) {
        thread.StoreShared(to, LoadPixelsOfThree(thread, input, past + (y * p.in_width + x) * 3, padding));
        continue;
      }
      FUSELAGE_NO_UNROLL
      for (int k = 0; k < 4; ++k) {
        uint32_t pixel = padding;
        if (inside && static_cast<unsigned>(x + k) < static_cast<unsigned>(p.in_width)) {
          const uint8_t* from = input + past + (y * p.in_width + x + k) * p.in_channels;
          FUSELAGE_UNROLL
          for (int c = 0; c < 4; ++c) {
            if (c < p.in_channels) pixel = (pixel & ~(0xffu << 8 * c)) | uint32_t{thread.Load(from + c)} << 8 * c;
          }
        }
        thread.StoreShared(to + 4 * k, pixel);
      }
    }
  }

  // Four pixels of three channels, from the words that they lie in; `input` is whole words.
  FUSELAGE_DEVICE static Vector<uint32_t, 4> LoadPixelsOfThree(Thread thread, const uint8_t* input, int offset,
                                                               uint32_t padding) {
    const auto* from = reinterpret_cast<const uint32_t*>(input) + (offset >> 2);
    const int past = 8 * (offset & 3);
    uint32_t words[4];
    FUSELAGE_UNROLL
    for (int i = 0; i < 3; ++i) words[i] = thread.Load(from + i);
    words[3] = past > 0 ? thread.Load(from + 3) : 0;
    FUSELAGE_UNROLL
    for (int i = 0; i < 3; ++i) words[i] = FunnelShift(words[i], words[i + 1], past);
    const uint32_t codes[4] = {words[0], FunnelShift(words[0], words[1], 24), FunnelShift(words[1], words[2], 16),
                               words[2] >> 8};
    Vector<uint32_t, 4> pixels;
    FUSELAGE_UNROLL
    for (int i = 0; i < 4; ++i) pixels.values[i] = (codes[i] & 0xffffff) | (padding & 0xff000000);
    return pixels;
  }

  FUSELAGE_DEVICE static uint32_t FunnelShift(uint32_t low, uint32_t high, int bits) {
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> bits);
  }

  // Adds all rows of taps. The rows of fragment i of a warp are the pixels of one row of the tile. kDilated: along
  // lines.
  template <bool kDilated>
  FUSELAGE_DEVICE static void Multiply(const Params& p, Warp warp, typename Tile::Accumulators& accumulators) {
    // Where a thread's pixels and weights are in shared memory, of the first row of taps.
    Lanes<Vector<uint32_t, 2>> pixels[Tile::kRowFragments];
    Lanes<uint32_t> weights;
    const uint32_t line = 4 * p.stem.patch_width, apart = kDilated ? 4 * p.dilation_x : 4;
    warp.ForThreads([&](Thread thread) {
      FUSELAGE_UNROLL
      for (int i = 0; i < Tile::kRowFragments; ++i) {
        const int y = Tile::Row(warp) / 16 + i, x = thread.lane() / 4, tap_x = thread.lane() % 4 * 2;
        const uint32_t first = p.stem.patch() + y * p.stride_y * line + 4 * (x * p.stride_x + tap_x * p.dilation_x);
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
          offsets[thread] = weights[thread] + tap_y * StemLayout::kWeightBytes + 8 * j * StemLayout::kRowBytes;
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

  // Half of the channels' sums to shared memory, [pixel][kSumsPitch]. Pixels outside of the image lose against all.
  template <int kHalf>
  FUSELAGE_DEVICE static void StageSums(const Params& p, Warp warp, Thread thread, int origin_y, int origin_x,
                                        typename Tile::Accumulators& accumulators) {
    FUSELAGE_UNROLL
    for (int i = 0; i < Tile::kRowFragments; ++i) {
      FUSELAGE_UNROLL
      for (int r = 0; r < 2; ++r) {
        const int row = Tile::Row(warp) + 16 * i + 8 * r + thread.lane() / 4;
        const int y = origin_y + row / StemLayout::kTileWidth, x = origin_x + row % StemLayout::kTileWidth;
        const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(p.out_height) &&
                            static_cast<unsigned>(x) < static_cast<unsigned>(p.out_width);
        const uint32_t to = row * kSumsPitch + 8 * (thread.lane() % 4);
        FUSELAGE_UNROLL
        for (int j = 0; j < Tile::kColumnFragments / 2; ++j) {
          const auto& sums = accumulators.fragments[i][j + kHalf * Tile::kColumnFragments / 2][thread].values;
          thread.StoreShared(to + 32 * j, Vector<int32_t, 2>{{sums[2 * r], sums[2 * r + 1]}});
        }
        if (inside) continue;
        FUSELAGE_UNROLL
        for (int j = 0; j < Tile::kColumnFragments / 2; ++j) {
          thread.StoreShared(to + 32 * j, Vector<int32_t, 2>{{INT32_MIN, INT32_MIN}});
        }
      }
    }
  }

  // The block's outputs of kSumColumns channels, four a thread, from their sums in shared memory.
  FUSELAGE_DEVICE static void PoolSums(const Params& p, Thread thread, int image, int first_y, int first_x,
                                       int first_channel) {
    const StemLayout& layout = p.stem;
    constexpr int kFours = kSumColumns / 4;
    static_assert(Tile::kThreads % kFours == 0);
    const int column = thread.index() % kFours * 4, channel = first_channel + column;
    if (channel >= p.out_channels) return;
    const auto bias = thread.LoadConstant(reinterpret_cast<const Vector<int32_t, 4>*>(p.bias + channel));
    const auto multiplier = thread.LoadConstant(reinterpret_cast<const Vector<float, 4>*>(p.multiplier + channel));
    const int64_t first = int64_t{image} * p.pool.out_height * p.pool.out_width * p.out_channels + channel;
    for (int i = thread.index() / kFours; i < layout.step_y * layout.step_x; i += Tile::kThreads / kFours) {
      const int y = static_cast<int>(layout.steps.Divide(i)), x = i - y * layout.step_x;
      if (first_y + y >= p.pool.out_height || first_x + x >= p.pool.out_width) continue;
      const int corner = y * p.pool.stride_y * StemLayout::kTileWidth + x * p.pool.stride_x;
      const Vector<int32_t, 4> sums = MaxOfWindow(p, thread, corner * kSumsPitch + 4 * column);
      Vector<uint8_t, 4> codes;
      FUSELAGE_UNROLL
      for (int c = 0; c < 4; ++c) {
        codes.values[c] = ToOutputCode<false>(p, sums.values[c], bias.values[c], multiplier.values[c], 0);
      }
      const int pixel = (first_y + y) * p.pool.out_width + first_x + x;
      StoreFourCodes(p, thread, codes, p.out_channels - channel, first + int64_t{pixel} * p.out_channels);
    }
  }

  // Of four channels; `corner` is where the window's first sums are in shared memory.
  FUSELAGE_DEVICE static Vector<int32_t, 4> MaxOfWindow(const Params& p, Thread thread, uint32_t corner) {
    Vector<int32_t, 4> largest = {{INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN}};
    const auto take = [&](uint32_t at) {
      const auto sums = thread.LoadShared<Vector<int32_t, 4>>(at);
      FUSELAGE_UNROLL
      for (int c = 0; c < 4; ++c) {
        largest.values[c] = sums.values[c] > largest.values[c] ? sums.values[c] : largest.values[c];
      }
    };
    constexpr int kLine = StemLayout::kTileWidth * kSumsPitch;
    if (p.pool.kernel_y == 3 && p.pool.kernel_x == 3 && p.pool.dilation_y == 1 && p.pool.dilation_x == 1) {
      FUSELAGE_UNROLL
      for (int tap = 0; tap < 9; ++tap) take(corner + tap / 3 * kLine + tap % 3 * kSumsPitch);
      return largest;
    }
    for (int tap_y = 0; tap_y < p.pool.kernel_y; ++tap_y) {
      for (int tap_x = 0; tap_x < p.pool.kernel_x; ++tap_x) {
        take(corner + tap_y * p.pool.dilation_y * kLine + tap_x * p.pool.dilation_x * kSumsPitch);
      }
    }
    return largest;
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_STEM_H_

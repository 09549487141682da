// A stem with the max pool behind it, of windows of two or three in steps of two. Sums never leave registers: a warp
// has a strip of 16 pixels by 32 channels, all of its weights, and walks down a segment of the image. It multiplies two
// rows of the convolution at once, so that most lines of the input are loaded once for both, and takes the largest of
// them and of the row above, which it keeps. Then it makes codes of those alone: a larger sum has no smaller code.
//
// Pixels are the columns of the products, n; channels are the rows. What a thread has of a row are four neighbouring
// pixels of four neighbouring channels (PooledStemLayout), so that a window of three reaches into another lane once in
// two windows. Of a strip's eight windows of three the first reaches into the strip before, which computes it.
//
// Weights are packed [groups of 32 channels, kTapRows, kRowBytes], with zeros past the last tap and channel. The grid
// is [blocks across, segments, batch * blocks of channels].
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOLED_STEM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOLED_STEM_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"
#include "kernels/int8/conv2d/cuda/stem_layout.h"
#include "kernels/int8/conv2d/cuda/stem_patch.h"

namespace fuselage::int8::conv2d::cuda {

// Of a convolution of up to kTapRows rows of taps, in steps of kStride.
template <int kTapRows, int kStride>
struct PooledStem {
  using Params = cuda::Params;
  static constexpr int kWarps = PooledStemLayout::kWarps, kBlocks = 4;
  static constexpr bool kWaits = true;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const PooledStemLayout& s = p.pooled_stem;
    PerWarp<Walker, kWarps> walkers;
    block.Phase([&](Warp warp) {
      const Part part = PartOf(block, p, warp);
      warp.ForThreads([&](Thread thread) { walkers[warp].LoadConstants(p, thread, part); });
      warp.WaitForEarlier();
      FUSELAGE_NO_UNROLL
      for (int pair = 0; pair < s.strips / 2; ++pair) {
        const StemFetch<kWarps * kWarpSize> fetch(p, s.patch, part.image, block.y() * s.step_y + s.origin_y,
                                                  (block.x() * (s.strips / 2) + pair) * s.step_x + s.origin_x,
                                                  s.input_flip);
        warp.ForThreads([&](Thread thread) { fetch.Run(thread, pair * static_cast<uint32_t>(s.patch.bytes)); });
      }
    });
    block.Phase([&](Warp warp) {
      const Part part = PartOf(block, p, warp);
      if (part.first_channel >= p.out_channels || part.first_window >= p.pool.out_width) return;
      warp.ForThreads([&](Thread thread) { walkers[warp].Place(p, thread, part); });
      walkers[warp].Walk(p, warp, part);
    });
  }

 private:
  static constexpr uint32_t kLine = 4 * PooledStemLayout::PatchWidth(kStride);

  // A row of the strip: fragments of channels by those of pixels.
  struct Sums {
    Lanes<Vector<int32_t, 4>> fragments[2][2];
  };
  // Two fragments of pixels, each of two registers.
  using Pixels = Lanes<Vector<uint32_t, 2>>[2];

  FUSELAGE_DEVICE static int KeptRows(const Params& p) { return p.pool.kernel_y - 2; }  // Above a pair: 0 or 1.
  FUSELAGE_DEVICE static int KeptColumns(const Params& p) { return p.pool.kernel_x - 2; }

  // What a warp has of it all.
  struct Part {
    int image, first_row, rows;  // Pooled ones.
    int strip, group;            // In its block.
    int first_window, first_channel;
  };
  FUSELAGE_DEVICE static Part PartOf(const Block& block, const Params& p, Warp warp) {
    const PooledStemLayout& s = p.pooled_stem;
    Part part;
    part.image = static_cast<int>(s.channel_blocks_divider.Divide(block.z()));
    part.first_row = block.y() * s.rows;
    part.rows = p.pool.out_height - part.first_row < s.rows ? p.pool.out_height - part.first_row : s.rows;
    part.strip = warp.index() % s.strips;
    part.group = warp.index() / s.strips;
    part.first_window = (block.x() * s.strips + part.strip) * s.strip_step;
    part.first_channel = ((block.z() - part.image * s.channel_blocks) * (kWarps / s.strips) + part.group) *
                         PooledStemLayout::kGroupChannels;
    return part;
  }

  // And a thread: two windows, four channels.
  struct State {
    uint32_t pixels[2], constants;  // In shared memory.
    uint8_t* output;                // Of the first window.
    bool stores[2];
  };

  struct Walker {
    Lanes<Vector<uint32_t, 4>> weights[kTapRows][2];
    Lanes<State> states;

    // To registers, and to shared memory what there is no room for.
    FUSELAGE_DEVICE void LoadConstants(const Params& p, Thread thread, const Part& part) {
      const auto* from = reinterpret_cast<const Vector<uint32_t, 4>*>(
          p.weight + (int64_t{part.first_channel} * kTapRows * StemTaps::kBytes + 32 * thread.lane()));
      FUSELAGE_UNROLL
      for (int tap = 0; tap < kTapRows; ++tap) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 2; ++i) {
          weights[tap][i][thread] = thread.LoadConstant(from + tap * (PooledStemLayout::kRowBytes / 16) + i);
        }
      }
      if (part.strip > 0 || thread.lane() % 4 > 0) return;
      const FourConstants constants = LoadFourConstants(p, thread, part.first_channel + thread.lane());
      const int32_t* bias = constants.bias.values;
      const uint32_t to = ConstantsPlace(p, thread, part);
      thread.StoreShared(to, Vector<int32_t, 4>{{bias[0], bias[0], bias[1], bias[1]}});
      thread.StoreShared(to + 128, Vector<int32_t, 4>{{bias[2], bias[2], bias[3], bias[3]}});
      thread.StoreShared(to + 256, constants.multiplier);
    }
    // As accumulators begin, of two times two channels, and the multipliers.
    FUSELAGE_DEVICE static uint32_t ConstantsPlace(const Params& p, Thread thread, const Part& part) {
      return static_cast<uint32_t>(p.pooled_stem.patch_bytes()) + part.group * PooledStemLayout::kConstantBytes +
             thread.lane() / 4 * 16;
    }

    FUSELAGE_DEVICE void Place(const Params& p, Thread thread, const Part& part) {
      const PooledStemLayout& s = p.pooled_stem;
      State& state = states[thread];
      const int lane = thread.lane(), channel = part.first_channel + lane / 4 * 4;
      state.constants = ConstantsPlace(p, thread, part);
      const int first_column = 2 * part.first_window - p.pool.pad_left - KeptColumns(p);
      // A pixel outside of the image is the image's nearest one, which its windows see, too.
      FUSELAGE_UNROLL
      for (int j = 0; j < 2; ++j) {
        const int x = first_column + lane / 8 * 4 + lane / 4 % 2 + 2 * j;
        const int inside = x < 0 ? 0 : x < p.out_width ? x : p.out_width - 1;
        const int column = inside - first_column + part.strip % 2 * 2 * s.strip_step;
        state.pixels[j] = part.strip / 2 * static_cast<uint32_t>(s.patch.bytes) + 4 * (column * kStride + lane % 4 * 2);
      }
      // Of two windows; where they are three wide, the strip's first one is not whole.
      const int window = part.first_window + lane % 4 * 2 - KeptColumns(p);
      FUSELAGE_UNROLL
      for (int j = 0; j < 2; ++j) {
        state.stores[j] = window + j >= part.first_window && window + j < p.pool.out_width && channel < p.out_channels;
      }
      const int64_t row = int64_t{part.image} * p.pool.out_height + part.first_row;
      state.output = static_cast<uint8_t*>(p.output) + (row * p.pool.out_width + window) * p.out_channels + channel;
    }

    FUSELAGE_DEVICE void Walk(const Params& p, Warp warp, const Part& part) {
      int y = 2 * part.first_row - p.pool.pad_top;  // Of the convolution.
      Sums kept, lower;
      if (KeptRows(p) > 0) {
        Start(warp, kept);
        FUSELAGE_UNROLL
        for (int tap = 0; tap < kTapRows; ++tap) {
          Pixels pixels;
          LoadLine(warp, tap * kLine, pixels);
          Multiply(warp, tap, pixels, kept);
        }
        warp.Rarely(Outside(p, y), [&] { Lose(warp, kept); });
        Advance(warp, 1);
        y += 1;
      }
      const int end = y + 2 * part.rows;
      FUSELAGE_NO_UNROLL
      for (; y < end; y += 2) {
        Step(p, warp, part, y, kept, lower);
        kept = lower;
        Advance(warp, 2);
      }
    }

    // Rows y and y + 1 of the convolution, of which the latter goes to `lower`, and with the one above, `kept`, a row
    // of codes.
    FUSELAGE_DEVICE void Step(const Params& p, Warp warp, const Part& part, int y, Sums& kept, Sums& lower) {
      Sums upper;
      Start(warp, upper);
      Start(warp, lower);
      FUSELAGE_UNROLL
      for (int i = 0; i < kTapRows + kStride; ++i) {
        Pixels pixels;
        LoadLine(warp, i * kLine, pixels);
        if (i < kTapRows) Multiply(warp, i, pixels, upper);
        if (i >= kStride) Multiply(warp, i - kStride, pixels, lower);
      }
      warp.Rarely(static_cast<unsigned>(y) >= static_cast<unsigned>(p.out_height - 1), [&] {
        warp.Rarely(Outside(p, y), [&] { Lose(warp, upper); });
        warp.Rarely(Outside(p, y + 1), [&] { Lose(warp, lower); });
      });
      warp.Rarely(KeptRows(p) == 0, [&] { Lose(warp, kept); });
      Pool(p, warp, part, kept, upper, lower);
    }

    // The sums begin with the bias: what is added to all of a channel does not matter to their maximum.
    FUSELAGE_DEVICE void Start(Warp warp, Sums& sums) {
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 2; ++i) {
          const auto bias = thread.LoadShared<Vector<int32_t, 4>>(states[thread].constants + 128 * i);
          FUSELAGE_UNROLL
          for (int j = 0; j < 2; ++j) sums.fragments[i][j][thread] = bias;
        }
      });
    }

    // Against everything.
    FUSELAGE_DEVICE static void Lose(Warp warp, Sums& sums) {
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          sums.fragments[i / 2][i % 2][thread] = {{INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN}};
        }
      });
    }

    // Down, by rows of the convolution.
    FUSELAGE_DEVICE void Advance(Warp warp, int rows) {
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int j = 0; j < 2; ++j) states[thread].pixels[j] += rows * kStride * kLine;
      });
    }

    FUSELAGE_DEVICE void LoadLine(Warp warp, uint32_t offset, Pixels& pixels) {
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int j = 0; j < 2; ++j) {
          const uint32_t at = states[thread].pixels[j] + offset;
          if constexpr (kStride % 2 == 0) {
            pixels[j][thread] = thread.LoadShared<Vector<uint32_t, 2>>(at);
          } else {
            pixels[j][thread].values[0] = thread.LoadShared<uint32_t>(at);
            pixels[j][thread].values[1] = thread.LoadShared<uint32_t>(at + 4);
          }
        }
      });
    }

    FUSELAGE_DEVICE void Multiply(Warp warp, int tap, const Pixels& pixels, Sums& sums) const {
      Lanes<uint32_t> halves[2][2];
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) halves[i / 2][i % 2][thread] = pixels[i / 2][thread].values[i % 2];
      });
      FUSELAGE_UNROLL
      for (int i = 0; i < 2; ++i) {
        FUSELAGE_UNROLL
        for (int j = 0; j < 2; ++j) {
          warp.template MultiplyCodes<int8_t, uint8_t>(weights[tap][i], halves[j][0], halves[j][1],
                                                       &sums.fragments[i][j]);
        }
      }
    }

    FUSELAGE_DEVICE static bool Outside(const Params& p, int y) {
      return static_cast<unsigned>(y) >= static_cast<unsigned>(p.out_height);
    }
    FUSELAGE_DEVICE static int32_t Larger(int32_t a, int32_t b) { return a > b ? a : b; }
    FUSELAGE_DEVICE static int32_t Largest(int32_t a, int32_t b, int32_t c) { return Larger(Larger(a, b), c); }

    // Stores a row of codes.
    FUSELAGE_DEVICE void Pool(const Params& p, Warp warp, const Part& part, const Sums& kept, const Sums& upper,
                              const Sums& lower) {
      // [channel][pixel], and of the last one of the lane below.
      Lanes<int32_t> columns[4][4], before[4], windows[2][4];
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 16; ++i) {
          const auto of = [&](const Sums& sums) {
            return sums.fragments[i / 8][i / 2 % 2][thread].values[i / 4 % 2 * 2 + i % 2];
          };
          columns[i / 4][i % 4][thread] = Largest(of(kept), of(upper), of(lower));
        }
      });
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) before[i] = warp.ShiftUp(1, columns[i][3]);
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          windows[0][i][thread] = Largest(before[i][thread], columns[i][0][thread], columns[i][1][thread]);
          windows[1][i][thread] = Largest(columns[i][1][thread], columns[i][2][thread], columns[i][3][thread]);
        }
      });
      warp.Rarely(KeptColumns(p) == 0, [&] {
        warp.ForThreads([&](Thread thread) {
          FUSELAGE_UNROLL
          for (int i = 0; i < 8; ++i) {
            const Lanes<int32_t>* pixels = columns[i % 4] + i / 4 * 2;
            windows[i / 4][i % 4][thread] = Larger(pixels[0][thread], pixels[1][thread]);
          }
        });
      });
      Lanes<uint32_t> codes[2];
      const bool whole_words = p.out_channels % 4 == 0;
      warp.ForThreads([&](Thread thread) {
        const State& state = states[thread];
        const auto multiplier = thread.LoadShared<Vector<float, 4>>(state.constants + 256);
        FUSELAGE_UNROLL
        for (int j = 0; j < 2; ++j) {
          codes[j][thread] =
              Codes(p, {windows[j][0][thread], windows[j][1][thread], windows[j][2][thread], windows[j][3][thread]},
                    multiplier);
        }
        FUSELAGE_UNROLL
        for (int j = 0; j < 2; ++j) {
          if (whole_words && state.stores[j]) {
            thread.Store(reinterpret_cast<uint32_t*>(state.output + j * p.out_channels), codes[j][thread]);
          }
        }
      });
      warp.Rarely(!whole_words, [&] {
        warp.ForThreads([&](Thread thread) {
          const State& state = states[thread];
          FUSELAGE_UNROLL
          for (int j = 0; j < 2; ++j) {
            if (!state.stores[j]) continue;
            FUSELAGE_UNROLL
            for (int i = 0; i < 4; ++i) {
              if (part.first_channel + thread.lane() / 4 * 4 + i >= p.out_channels) continue;
              thread.Store(state.output + j * p.out_channels + i, static_cast<uint8_t>(codes[j][thread] >> 8 * i));
            }
          }
        });
      });
      warp.ForThreads([&](Thread thread) { states[thread].output += int64_t{p.pool.out_width} * p.out_channels; });
    }

    // Of sums that have their bias.
    FUSELAGE_DEVICE static uint32_t Codes(const Params& p, const Vector<int32_t, 4>& sums,
                                          const Vector<float, 4>& multiplier) {
      using ::fuselage::cuda::TwoCodes;
      float v[4];
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) v[i] = ::fuselage::cuda::Rescale(sums.values[i], multiplier.values[i]);
      if (::fuselage::cuda::IsPlain(p.codes)) {
        return TwoCodes<true>(v[0], v[1], p.codes, TwoCodes<true>(v[2], v[3], p.codes));
      }
      return TwoCodes<false>(v[0], v[1], p.codes, TwoCodes<false>(v[2], v[3], p.codes));
    }
  };
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_POOLED_STEM_H_

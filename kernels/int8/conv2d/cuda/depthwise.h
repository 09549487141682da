// Groups of one channel each: a thread has some neighbouring channels of an output pixel, four taps of a line at a
// time, by dp4a. The grid is [output pixels * channels / (kChannels * threads)], rounded up.
//
// Weights are packed [kernel_width / 4, rounded up, kernel_height, channels, 4 taps], zeros where there is no tap.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DEPTHWISE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DEPTHWISE_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/codes.h"
#include "kernels/int8/conv2d/cuda/epilogue.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// X: uint8_t or int8_t, the input's codes. The channels are a multiple of kChannels.
template <typename X, int kWords>
struct Depthwise {
  using Params = cuda::Params;
  static constexpr int kWarps = 4;
  static constexpr int kBlocks = 4;
  static constexpr int kChannels = 4 * kWords;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        const auto index = static_cast<uint32_t>(block.x() * kWarps * kWarpSize + thread.index());
        const auto row = static_cast<int>(p.by_pixel_threads.Divide(index));
        const int channel = static_cast<int>(index) * kChannels - row * p.out_channels;
        Sums sums = {};
        // Beyond the last pixel, of the first: in a branch each load would take two instructions more.
        Accumulate(p, thread, row < p.rows ? row : 0, channel, &sums);
        if (row < p.rows) Store(p, thread, row, channel, sums);
      });
    });
  }

 private:
  struct Sums {
    Vector<int32_t, 4> words[kWords];
  };

  FUSELAGE_DEVICE static void Accumulate(const Params& p, Thread thread, int row, int channel, Sums* sums) {
    const auto line = static_cast<int>(p.by_out_width.Divide(row));
    const auto image = static_cast<int>(p.by_out_height.Divide(line));
    const int first_x = (row - line * p.out_width) * p.stride_x - p.pad_left;
    const int first_y = (line - image * p.out_height) * p.stride_y - p.pad_top;
    const int64_t pitch = int64_t{p.in_width} * p.in_channels;
    const uint8_t* input = p.input + (int64_t{image} * p.in_height + first_y) * pitch + channel;
    const auto* weight = reinterpret_cast<const uint32_t*>(p.weight) + channel;
    FUSELAGE_NO_UNROLL
    for (int first = 0; first < p.kernel_width; first += 4) {
      const uint8_t* pixels[4];  // Of the taps; null where there is none in the line.
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int x = first_x + (first + i) * p.dilation_x;
        const bool inside = first + i < p.kernel_width && static_cast<unsigned>(x) < static_cast<unsigned>(p.in_width);
        pixels[i] = inside ? input + int64_t{x} * p.in_channels : nullptr;
      }
      int64_t line = 0;
      FUSELAGE_NO_UNROLL
      for (int y = first_y; y < first_y + p.kernel_height * p.dilation_y; y += p.dilation_y) {
        const bool inside = static_cast<unsigned>(y) < static_cast<unsigned>(p.in_height);
        Vector<uint32_t, kWords> taps[4];
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          taps[i] = Padding<4 * kWords>(p.padding);
          if (!inside || pixels[i] == nullptr) continue;
          taps[i] = thread.Load(reinterpret_cast<const Vector<uint32_t, kWords>*>(pixels[i] + line));
        }
        FUSELAGE_UNROLL
        for (int w = 0; w < kWords; ++w) {
          const auto of_channels =
              ::fuselage::cuda::Transposed(taps[0].values[w], taps[1].values[w], taps[2].values[w], taps[3].values[w]);
          const auto weights = thread.LoadConstant(reinterpret_cast<const Vector<uint32_t, 4>*>(weight + 4 * w));
          FUSELAGE_UNROLL
          for (int i = 0; i < 4; ++i) {
            int32_t& sum = sums->words[w].values[i];
            sum = ::fuselage::cuda::MultiplyBytes<X>(of_channels.values[i], weights.values[i], sum);
          }
        }
        line += p.dilation_y * pitch;
        weight += p.in_channels;
      }
    }
  }

  FUSELAGE_DEVICE static void Store(const Params& p, Thread thread, int row, int channel, const Sums& sums) {
    const int64_t index = int64_t{row} * p.out_channels + channel;
    const bool is_float = p.float_bias != nullptr;
    Four values[kWords];
    FUSELAGE_UNROLL
    for (int w = 0; w < kWords; ++w) {
      values[w] = is_float ? FourFloats(p, thread, sums.words[w], channel + 4 * w, 4)
                           : FourValues(p, thread, sums.words[w], channel + 4 * w, 4, index + 4 * w);
    }
    Activate(p, values);
    Vector<uint32_t, kWords> codes;
    FUSELAGE_UNROLL
    for (int w = 0; w < kWords; ++w) {
      if (is_float) StoreFourFloats(p, thread, values[w], 4, index + 4 * w);
      const Vector<uint8_t, 4> four = FourCodes(p, values[w]);
      memcpy(&codes.values[w], &four, sizeof(four));
    }
    if (is_float) return;
    thread.Store(reinterpret_cast<Vector<uint32_t, kWords>*>(static_cast<uint8_t*>(p.output) + index), codes);
  }
};

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_DEPTHWISE_H_

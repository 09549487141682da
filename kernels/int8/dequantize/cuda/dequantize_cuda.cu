#include "kernels/int8/dequantize/cuda/dequantize_cuda.h"

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::dequantize::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadWord;
using ::fuselage::cuda::Rescale;
using ::fuselage::cuda::StoreFloats;
using ::fuselage::cuda::Thread;

template <bool kOneChannel>
struct Dequantize {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const uint32_t row = item / p.pixel_groups;
      const int64_t image = row / p.channel_groups, pixel = int64_t{4} * (item % p.pixel_groups);
      const int channel = 4 * static_cast<int>(row % p.channel_groups);
      const int64_t left = p.dequantize.pixels - pixel, channels_left = p.dequantize.channels - channel;
      const int pixels = static_cast<int>(left < 4 ? left : 4);
      const int channels = static_cast<int>(channels_left < 4 ? channels_left : 4);

      const uint8_t* x = p.x + (image * p.dequantize.pixels + pixel) * p.dequantize.channels + channel;
      uint32_t words[4] = {};  // One for each pixel; with one channel the first has all pixels.
      if constexpr (kOneChannel) {
        words[0] = LoadWord(thread, x, pixels);
      } else {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (i < pixels) words[i] = LoadWord(thread, x + i * p.dequantize.channels, channels);
        }
      }
      FUSELAGE_UNROLL
      for (int c = 0; c < (kOneChannel ? 1 : 4); ++c) {
        if (c >= channels) continue;
        Floats4 y;
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int32_t code = (kOneChannel ? CodeOf(words[0], i) : CodeOf(words[i], c)) ^ p.dequantize.flip;
          y.values[i] = Rescale(code - p.dequantize.zero_point, p.dequantize.scale);
        }
        StoreFloats(thread, p.y + (image * p.dequantize.channels + channel + c) * p.dequantize.pixels + pixel, y,
                    pixels);
      }
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  const std::array<int, 3> grid = {params.items.blocks, 1, 1};
  if (params.dequantize.channels == 1) {
    fuselage::cuda::Launch<Dequantize<true>>(grid, /*shared_bytes=*/0, params, stream);
  } else {
    fuselage::cuda::Launch<Dequantize<false>>(grid, /*shared_bytes=*/0, params, stream);
  }
}

}  // namespace fuselage::int8::dequantize::cuda

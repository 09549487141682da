#include "kernels/int8/quantize/cuda/quantize_cuda.h"

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::quantize::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeAt;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadFloats;
using ::fuselage::cuda::QuantizeValue;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::StoreWord;
using ::fuselage::cuda::Thread;

// kPixelBytes: 1 to 4, all channels of four pixels are one item's; 0: any.
template <int kPixelBytes>
struct Quantize {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const uint32_t row = item / p.pixel_groups;
      const int64_t image = row / p.code_groups, pixel = int64_t{4} * (item % p.pixel_groups);
      const int channel = 4 * static_cast<int>(row % p.code_groups);
      const int64_t left = p.quantize.pixels - pixel;
      const int pixels = static_cast<int>(left < 4 ? left : 4);

      uint32_t words[4] = {};  // One for each pixel.
      FUSELAGE_UNROLL
      for (int c = 0; c < (kPixelBytes > 0 ? kPixelBytes : 4); ++c) {
        if (channel + c >= p.quantize.channels) {
          FUSELAGE_UNROLL
          for (uint32_t& word : words) word |= CodeAt(p.quantize.zero_point, c);
          continue;
        }
        const Floats4 x =
            LoadFloats(thread, p.x + (image * p.quantize.channels + channel + c) * p.quantize.pixels + pixel, pixels);
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          words[i] |= CodeAt(
              QuantizeValue(x.values[i], p.quantize.scale, {p.quantize.zero_point, p.quantize.lo, p.quantize.hi}), c);
        }
      }
      FUSELAGE_UNROLL
      for (uint32_t& word : words) word ^= Splat(p.quantize.flip);
      Store(thread, p, words, (image * p.quantize.pixels + pixel) * p.pixel_bytes + channel, pixels, channel);
    });
  }

  FUSELAGE_DEVICE static void Store(Thread thread, const Params& p, const uint32_t (&words)[4], int64_t first,
                                    int pixels, int channel) {
    uint8_t* y = p.y + first;
    if constexpr (kPixelBytes > 0) {
      // The pixels follow each other.
      Codes16 codes = {};
      FUSELAGE_UNROLL
      for (int i = 0; i < 4 * kPixelBytes; ++i) {
        codes.values[i / 4] |= CodeAt(CodeOf(words[i / kPixelBytes], i % kPixelBytes), i % 4);
      }
      if constexpr (kPixelBytes == 4) {
        StoreCodes(thread, y, codes, 4 * pixels);
      } else {
        FUSELAGE_UNROLL
        for (int i = 0; i < kPixelBytes; ++i) {
          StoreWord(thread, y + 4 * i, codes.values[i], kPixelBytes * pixels - 4 * i);
        }
      }
    } else {
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (i < pixels) StoreWord(thread, y + int64_t{i} * p.pixel_bytes, words[i], p.pixel_bytes - channel);
      }
    }
  }
};

template <int kPixelBytes>
void LaunchFor(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Quantize<kPixelBytes>>({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream);
}

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  switch (params.pixel_bytes) {
    case 1: return LaunchFor<1>(params, stream);
    case 3: return LaunchFor<3>(params, stream);
    case 4: return LaunchFor<4>(params, stream);
    default: return LaunchFor<0>(params, stream);
  }
}

}  // namespace fuselage::int8::quantize::cuda

#include "kernels/int8/quantize/cuda/quantize_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::quantize::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadFloats;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::StoreWord;
using ::fuselage::cuda::Thread;

// kPixelBytes: 1 to 4, all channels of four pixels are one item's; 0: any.
template <int kPixelBytes>
struct Quantize {
  static constexpr int kWarps = kItemWarps;
  static constexpr int kChannels = kPixelBytes > 0 ? kPixelBytes : 4;  // Of an item.
  using Params = LaunchParams;

  struct Item {
    Floats4 x[kChannels];  // Where a pixel has fewer channels than bytes, zeros.
    uint8_t* y;
    int pixels, codes;  // What there is from here on: pixels of the image, codes of the pixel.
  };

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    constexpr int kAtOnce = kPixelBytes == 1 ? 4 : 1;  // Three or four loads.
    ForEach<kAtOnce>(
        block, p.items, [&](Thread thread, uint32_t item) { return Load(thread, p, item); },
        [&](Thread thread, const Item& item) { Store(thread, p, item); });
  }

  FUSELAGE_DEVICE static Item Load(Thread thread, const Params& p, uint32_t index) {
    // What has one channel is one image (see Params).
    const uint32_t row = kPixelBytes == 1 ? 0 : p.by_pixel_groups.Divide(index);
    const uint32_t image = kPixelBytes > 0 ? row : p.by_code_groups.Divide(row);
    const int channel = kPixelBytes > 0 ? 0 : static_cast<int>(4 * (row - image * p.code_groups));
    const int channels = static_cast<int>(p.quantize.channels) - channel;
    const int64_t pixel = int64_t{4} * (index - row * p.pixel_groups), left = p.quantize.pixels - pixel;
    Item item = {};
    item.y = p.y + (image * p.quantize.pixels + pixel) * p.pixel_bytes + channel;
    item.pixels = static_cast<int>(left < 4 ? left : 4);
    item.codes = p.pixel_bytes - channel;
    const float* x = p.x + (image * p.quantize.channels + channel) * p.quantize.pixels + pixel;
    FUSELAGE_UNROLL
    for (int c = 0; c < kChannels; ++c) {
      if (c < channels) item.x[c] = LoadFloats(thread, x + c * p.quantize.pixels, item.pixels);
    }
    return item;
  }

  FUSELAGE_DEVICE static void Store(Thread thread, const Params& p, const Item& item) {
    // Code k of four pixels that follow each other; a word is a pixel's where there are four channels or any number.
    const auto value = [&](int k) { return item.x[k % kChannels].values[k / kChannels]; };
    Codes16 codes;
    FUSELAGE_UNROLL
    for (int i = 0; i < kChannels; ++i) {
      codes.values[i] = p.quantizer.ToCodes(value(4 * i), value(4 * i + 1), value(4 * i + 2), value(4 * i + 3));
    }
    if constexpr (kPixelBytes == 4) {
      StoreCodes(thread, item.y, codes, 4 * item.pixels);
    } else {
      FUSELAGE_UNROLL
      for (int i = 0; i < kChannels; ++i) {
        if constexpr (kPixelBytes > 0) {
          StoreWord(thread, item.y + 4 * i, codes.values[i], kPixelBytes * item.pixels - 4 * i);
        } else if (i < item.pixels) {
          StoreWord(thread, item.y + int64_t{i} * p.pixel_bytes, codes.values[i], item.codes);
        }
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

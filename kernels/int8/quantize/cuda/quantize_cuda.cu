#include "kernels/int8/quantize/cuda/quantize_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/int8/quantize/cuda/launch_pixel_groups.h"

namespace fuselage::int8::quantize::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadFloats;
using ::fuselage::cuda::Thread;

// kPixelBytes: 1 to 4, all channels of four pixels are one item's; 0: any. kPlanes: of x, else pixels.
template <int kPixelBytes, bool kPlanes>
struct QuantizeFrom {
  static constexpr int kWarps = kItemWarps, kSharedBytes = 0;
  static constexpr int kChannels = kPixelBytes > 0 ? kPixelBytes : 4;  // Of an item.
  using Params = LaunchParams;

  struct Item {
    Floats4 x[kChannels];  // Where a pixel has fewer channels than bytes, zeros.
    PixelGroup group;
  };

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    constexpr int kAtOnce = kPixelBytes == 1 ? 4 : 1;  // Three or four loads.
    ForEach<kAtOnce>(
        block, p.groups.items, [&](Thread thread, uint32_t item) { return Load(thread, p, item); },
        [&](Thread thread, const Item& item) { Store(thread, p, item); });
  }

  FUSELAGE_DEVICE static Item Load(Thread thread, const Params& p, uint32_t index) {
    Item item = {};
    item.group = GroupAt<kPixelBytes>(p.groups, index);
    const PixelGroup& group = item.group;
    const int64_t channels = p.groups.channels, pixels = p.groups.pixels;
    const float* x = p.x + group.image * channels * pixels +
                     (kPlanes ? group.channel * pixels + group.pixel : group.channel + group.pixel * channels);
    FUSELAGE_UNROLL
    for (int c = 0; c < kChannels; ++c) {
      if (group.channel + c >= channels) continue;
      if constexpr (kPlanes) {
        item.x[c] = LoadFloats(thread, x + c * pixels, group.pixels);
      } else {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          if (i < group.pixels) item.x[c].values[i] = thread.Load(x + i * channels + c);
        }
      }
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
    StoreGroup<kPixelBytes>(thread, p.groups, item.group, codes, p.y);
  }
};

// By names that tools show.
template <int kPixelBytes>
struct Quantize : QuantizeFrom<kPixelBytes, true> {};
template <int kPixelBytes>
struct QuantizePixels : QuantizeFrom<kPixelBytes, false> {};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  if (params.planes) return LaunchPixelGroups<Quantize>(params, stream);
  LaunchPixelGroups<QuantizePixels>(params, stream);
}

}  // namespace fuselage::int8::quantize::cuda

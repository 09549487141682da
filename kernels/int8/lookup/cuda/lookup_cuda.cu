#include "kernels/int8/lookup/cuda/lookup_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/int8/quantize/cuda/launch_pixel_groups.h"

namespace fuselage::int8::lookup::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::IsAligned;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadWord;
using ::fuselage::cuda::PickBytes;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Transposed;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;
using quantize::cuda::PixelGroup;

constexpr int kTable = 256;  // Bytes.

// kPixelBytes: 1 to 4, all channels of four pixels are one item's; 0: any.
template <int kPixelBytes>
struct Lookup {
  static constexpr int kWarps = kItemWarps;
  static constexpr int kChannels = kPixelBytes > 0 ? kPixelBytes : 4;  // Of an item.
  // An image's tables, of all a pixel's bytes, lie in shared memory, where addresses are short; two bytes a code.
  static constexpr bool kShared = kPixelBytes > 1;
  static constexpr int kSharedBytes = kShared ? 4 * 2 * kTable : 0;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    if constexpr (kShared) {
      static_assert(4 * kTable == 4 * kWarps * fuselage::cuda::kWarpSize);  // Four codes each.
      block.Phase([&](Warp warp) { warp.ForThreads([&](Thread thread) { FillTables(thread, p); }); });
    }
    ForEach(block, p.groups.items, [&](Thread thread, uint32_t item) {
      const PixelGroup group = quantize::cuda::GroupAt<kPixelBytes>(p.groups, item);
      const Codes16 planes = LoadPlanes(thread, p, group);
      // Code k of four pixels that follow each other; a word is a pixel's where there are four channels or any number.
      const auto code = [&](int k) {
        const int channel = k % kChannels;
        return CodeAt(thread, p, group, channel, CodeOf(planes.values[channel], k / kChannels));
      };
      Codes16 codes = {};
      FUSELAGE_UNROLL
      for (int i = 0; i < kChannels; ++i) {
        codes.values[i] = PickBytes(PickBytes(code(4 * i), code(4 * i + 1), 0x0040),
                                    PickBytes(code(4 * i + 2), code(4 * i + 3), 0x0040), 0x5410);
      }
      quantize::cuda::StoreGroup<kPixelBytes>(thread, p.groups, group, codes, p.y);
    });
  }

  // Those of bytes that are no channel's have the padding alone.
  FUSELAGE_DEVICE static void FillTables(Thread thread, const Params& p) {
    const int word = thread.index(), channel = 4 * word / kTable;
    uint32_t codes = Splat(p.padding);
    if (channel < p.lookup.channels) {
      const uint8_t* table = p.tables + (p.lookup.tables > 1 ? channel * kTable : 0);
      codes = thread.LoadConstant(reinterpret_cast<const uint32_t*>(table) + word % (kTable / 4));
    }
    thread.StoreShared(8 * word, Vector<uint32_t, 2>{{PickBytes(codes, 0, 0x4140), PickBytes(codes, 0, 0x4342)}});
  }

  // Four pixels of each channel; zeros where there is none.
  FUSELAGE_DEVICE static Codes16 LoadPlanes(Thread thread, const Params& p, const PixelGroup& group) {
    const lookup::Params& lookup = p.lookup;
    const int channels = static_cast<int>(lookup.channels) - group.channel;
    const uint8_t* x = p.x + group.image * lookup.channels * lookup.pixels + group.channel * lookup.channel_stride +
                       group.pixel * lookup.pixel_stride;
    Codes16 words = {};
    if (lookup.pixel_stride == 1) {
      FUSELAGE_UNROLL
      for (int c = 0; c < kChannels; ++c) {
        if (c < channels) words.values[c] = LoadWord(thread, x + c * lookup.channel_stride, group.pixels);
      }
      return words;
    }
    if (kShared && lookup.channels == 3 && group.pixels == 4 && IsAligned(x, 4)) {
      const auto* from = reinterpret_cast<const uint32_t*>(x);
      const uint32_t a = thread.Load(from), b = thread.Load(from + 1), c = thread.Load(from + 2);
      return Transposed(a, PickBytes(a, b, 0x0543), PickBytes(b, c, 0x0432), c >> 8);
    }
    FUSELAGE_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i < group.pixels) words.values[i] = LoadWord(thread, x + i * lookup.pixel_stride, channels);
    }
    return Transposed(words.values[0], words.values[1], words.values[2], words.values[3]);
  }

  FUSELAGE_DEVICE static uint32_t CodeAt(Thread thread, const Params& p, const PixelGroup& group, int channel,
                                         int32_t byte) {
    if constexpr (kShared) return thread.LoadShared<uint16_t>(static_cast<uint32_t>(2 * (channel * kTable + byte)));
    if (group.channel + channel >= p.lookup.channels) return p.padding;
    uint32_t table = 0;
    if (p.lookup.tables > 1 && p.lookup.channels > 1) table = static_cast<uint32_t>(group.channel + channel);
    if (p.lookup.tables > 1 && p.lookup.channels == 1) table = group.image % static_cast<uint32_t>(p.lookup.tables);
    return thread.LoadConstant(p.tables + int64_t{table} * kTable + byte);
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) { quantize::cuda::LaunchPixelGroups<Lookup>(params, stream); }

}  // namespace fuselage::int8::lookup::cuda

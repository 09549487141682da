#include "kernels/int8/group_norm/cuda/group_norm_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"
#include "kernels/int8/group_norm/group_norm_params.h"

namespace fuselage::int8::group_norm::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeAt;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::LoadCodes;
using ::fuselage::cuda::LoadWord;
using ::fuselage::cuda::MultiplyAdd;
using ::fuselage::cuda::MultiplyBytes;
using ::fuselage::cuda::QuantizeValue;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::StoreWord;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::ToFloat;
using ::fuselage::cuda::Warp;

struct GroupNorm {
  static constexpr int kWarps = 8;
  static constexpr int kBlocks = 4;  // With the registers that five would have, sm_90 spills.
  using Params = LaunchParams;

  // In shared memory: each warp's sums, then channels.
  static constexpr uint32_t kChannelsAt = kWarps * sizeof(Sums);
  static constexpr uint32_t kSharedBytes = kChannelsAt + kChannelsAtOnce * sizeof(Channel);

  // Channels of the block's group, counted from its first.
  struct Share {
    int first, count;
  };

  // each(i, k, count) for every kCodes codes of these channels that are this thread's: `count` of them, the first of
  // which is i of all and k of its row.
  template <int kCodes, typename Each>
  FUSELAGE_DEVICE static void ForCodes(const Block& block, Thread thread, const Params& p, const Share& share,
                                       Each each) {
    const int64_t image = block.x() / p.groups, group = block.x() % p.groups;
    const int64_t begin = image * p.channels * p.pixels + (group * p.group_channels + share.first) * p.channel_codes;
    const int codes = share.count * p.channel_codes, items = (codes + kCodes - 1) / kCodes;
    FUSELAGE_NO_UNROLL
    for (int item = thread.index(); item < p.rows * items; item += kWarps * kWarpSize) {
      const int row = item / items, k = kCodes * (item % items);
      each(begin + int64_t{row} * p.channels + k, k, codes - k < kCodes ? codes - k : kCodes);
    }
  }

  FUSELAGE_DEVICE static void AddUp(const Block& block, Warp warp, const Params& p) {
    Lanes<int64_t> codes, squares;
    warp.ForThreads([&](Thread thread) {
      Sums sums = {};
      ForCodes<16>(block, thread, p, {0, p.group_channels}, [&](int64_t i, int, int count) {
        const Codes16 x = LoadCodes(thread, p.x + i, count);
        FUSELAGE_UNROLL
        for (int w = 0; w < 4; ++w) {
          const int left = count - 4 * w;
          if (left <= 0) continue;
          const uint32_t word = (x.values[w] ^ Splat(p.x_flip)) & (left < 4 ? ~0u >> (32 - 8 * left) : ~0u);
          sums.codes += MultiplyBytes<int8_t>(word, Splat(1), 0);
          sums.squares += MultiplyBytes<int8_t>(word, word, 0);
        }
      });
      codes[thread] = sums.codes;
      squares[thread] = sums.squares;
    });
    FUSELAGE_UNROLL
    for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
      const Lanes<int64_t> other_codes = warp.Exchange(mask, codes), other_squares = warp.Exchange(mask, squares);
      warp.ForThreads([&](Thread thread) {
        codes[thread] += other_codes[thread];
        squares[thread] += other_squares[thread];
      });
    }
    warp.ForThreads([&](Thread thread) {
      if (thread.lane() != 0) return;
      thread.StoreShared(warp.index() * uint32_t{sizeof(Sums)}, Sums{codes[thread], squares[thread]});
    });
  }

  FUSELAGE_DEVICE static void FindChannels(const Block& block, Thread thread, const Params& p, const Share& share) {
    if (thread.index() >= share.count) return;
    Sums sums = {};
    FUSELAGE_UNROLL
    for (int warp = 0; warp < kWarps; ++warp) {
      const Sums part = thread.LoadShared<Sums>(warp * uint32_t{sizeof(Sums)});
      sums.codes += part.codes;
      sums.squares += part.squares;
    }
    const Group group = GroupOf(int64_t{p.group_channels} * p.pixels, sums, p.x_zero_point, p.x_scale, p.eps);
    const int first = block.x() % p.groups * p.group_channels + share.first;
    for (int c = thread.index(); c < share.count; c += kWarps * kWarpSize) {
      thread.StoreShared(kChannelsAt + c * uint32_t{sizeof(Channel)},
                         ChannelOf(group, p.x_scale, thread.LoadConstant(p.weight + first + c),
                                   thread.LoadConstant(p.bias + first + c)));
    }
  }

  FUSELAGE_DEVICE static void Scale(const Block& block, Thread thread, const Params& p, const Share& share) {
    ForCodes<4>(block, thread, p, share, [&](int64_t i, int k, int count) {
      const uint32_t x = LoadWord(thread, p.x + i, count) ^ Splat(p.x_flip);
      uint32_t word = 0;
      FUSELAGE_NO_UNROLL
      for (int n = 0; n < count; ++n) {
        const auto channel =
            thread.LoadShared<Channel>(kChannelsAt + p.by_channel_codes.Divide(k + n) * sizeof(Channel));
        const int32_t code = static_cast<int8_t>(x >> 8 * n);
        const float y = MultiplyAdd(ToFloat(code - p.x_zero_point), channel.gain, channel.offset);
        word |= CodeAt(QuantizeValue(p.activated ? elementwise::Activated(p.function, y) : y, p.y_scale,
                                     {p.y_zero_point, p.y_lo, p.y_hi}),
                       n);
      }
      StoreWord(thread, p.y + i, word ^ Splat(p.y_flip), count);
    });
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) { AddUp(block, warp, p); });
    for (int first = 0; first < p.group_channels; first += kChannelsAtOnce) {
      const int left = p.group_channels - first;
      const Share share = {first, left < kChannelsAtOnce ? left : kChannelsAtOnce};
      block.Phase([&](Warp warp) { warp.ForThreads([&](Thread thread) { FindChannels(block, thread, p, share); }); });
      block.Phase([&](Warp warp) { warp.ForThreads([&](Thread thread) { Scale(block, thread, p, share); }); });
    }
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<GroupNorm>({params.images * params.groups, 1, 1}, GroupNorm::kSharedBytes, params, stream);
}

}  // namespace fuselage::int8::group_norm::cuda

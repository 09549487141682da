#include "kernels/int8/linear_groups/cuda/linear_groups_cuda.h"

#include <cstring>

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::linear_groups::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::LoadWord;
using ::fuselage::cuda::MultiplyAdd;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;

constexpr int kUnit = 32;  // Features of a product.

// Twice the number that an E2M1 code stands for: sign, two bits of exponent, one of mantissa.
FUSELAGE_HOST_DEVICE int32_t Doubled(uint32_t code) {
  const auto magnitude = static_cast<int32_t>(0x0c08060403020100ull >> (8 * (code & 7)) & 0xff);
  return code & 8 ? -magnitude : magnitude;
}

FUSELAGE_HOST_DEVICE int32_t WeightOf(bool int4, uint32_t code) {
  return int4 ? static_cast<int32_t>(code) : Doubled(code);
}

// 16 rows by 8 channels a warp, the warps of a block side by side in channels.
struct Linear {
  static constexpr int kWarps = 4;
  static constexpr int kRows = 16;
  static constexpr int kSharedBytes = 256 * 2;  // i8 pairs for each byte of weights.
  using Params = LaunchParams;

  FUSELAGE_DEVICE static uint32_t PairsOf(Thread thread, uint32_t codes) {
    return thread.LoadShared<uint16_t>(2 * (codes & 0xff)) |
           static_cast<uint32_t>(thread.LoadShared<uint16_t>(2 * (codes >> 8 & 0xff))) << 16;
  }

  // Of a lane's channels 2 * (lane % 4) and the next, of group `part`.
  FUSELAGE_DEVICE static Vector<float, 2> LoadScales(Thread thread, const Params& p, int64_t part) {
    const int64_t first = part * kTileChannels + 2 * (thread.lane() % 4);
    if (p.int4) {
      return thread.LoadConstant(reinterpret_cast<const Vector<float, 2>*>(static_cast<const float*>(p.scale) + first));
    }
    const auto codes =
        thread.LoadConstant(reinterpret_cast<const Vector<uint8_t, 2>*>(static_cast<const uint8_t*>(p.scale) + first));
    Vector<float, 2> scales;
    for (int i = 0; i < 2; ++i) {
      const uint32_t bits = (codes.values[i] - 1u) << 23;  // Half of 2^(code - 127).
      memcpy(&scales.values[i], &bits, sizeof(float));
    }
    return scales;
  }

  // What is added to each of four weights, so that INT4's, less 128, are what they stand for: no sum exceeds a byte.
  FUSELAGE_DEVICE static uint32_t LoadLeast(Thread thread, const Params& p, int64_t part) {
    const int least = p.least == nullptr ? -8 : thread.LoadConstant(p.least + part * kTileChannels + thread.lane() / 4);
    return static_cast<uint32_t>(least + 128) * 0x01010101u;
  }

  FUSELAGE_DEVICE static uint32_t LoadX(Thread thread, const Params& p, int64_t row, int k) {
    return row < p.rows ? LoadWord(thread, p.x + row * p.depth + k, p.depth - k) : 0;
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        for (int i = thread.index(); i < 256; i += kWarps * kWarpSize) {
          const uint32_t low = WeightOf(p.int4, i & 15) & 0xff, high = WeightOf(p.int4, i >> 4) & 0xff;
          thread.StoreShared(2 * i, static_cast<uint16_t>(low | high << 8));
        }
      });
    });
    block.Phase([&](Warp warp) {
      const int tile = block.y() * kWarps + warp.index();
      if (tile * kTileChannels >= p.channels) return;
      const int64_t first_row = int64_t{block.x()} * kRows;
      Lanes<Vector<float, 4>> totals;
      warp.ForThreads([&](Thread thread) { totals[thread] = {}; });
      for (int group = 0; group < p.groups; ++group) {
        const int64_t part = int64_t{tile} * p.groups + group;
        Lanes<Vector<uint32_t, 4>> x;
        Lanes<uint32_t> least, w0, w1;
        Lanes<Vector<int32_t, 4>> sums;
        warp.ForThreads([&](Thread thread) {
          sums[thread] = {};
          if (p.int4) least[thread] = LoadLeast(thread, p, part);
        });
        for (int unit = 0; unit < p.units; ++unit) {
          const int64_t step = part * p.units + unit;
          warp.ForThreads([&](Thread thread) {
            const int64_t row = first_row + thread.lane() / 4;
            const int k = kUnit * (group * p.units + unit) + 4 * (thread.lane() % 4);
            x[thread] = {{LoadX(thread, p, row, k), LoadX(thread, p, row + 8, k), LoadX(thread, p, row, k + 16),
                          LoadX(thread, p, row + 8, k + 16)}};
            const uint32_t codes = thread.LoadConstant(p.weight + step * kWarpSize + thread.lane());
            w0[thread] = PairsOf(thread, codes);
            w1[thread] = PairsOf(thread, codes >> 16);
            if (p.int4) {
              w0[thread] = (w0[thread] + least[thread]) ^ 0x80808080u;
              w1[thread] = (w1[thread] + least[thread]) ^ 0x80808080u;
            }
          });
          warp.MultiplyCodes<int8_t>(x, w0, w1, &sums);
        }
        warp.ForThreads([&](Thread thread) {
          const Vector<float, 2> scales = LoadScales(thread, p, part);
          FUSELAGE_UNROLL
          for (int i = 0; i < 4; ++i) {
            float& total = totals[thread].values[i];
            total = MultiplyAdd(fuselage::cuda::ToFloat(sums[thread].values[i]), scales.values[i % 2], total);
          }
        });
      }
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int64_t row = first_row + thread.lane() / 4 + 8 * (i / 2);
          const int channel = tile * kTileChannels + 2 * (thread.lane() % 4) + i % 2;
          if (row >= p.rows || channel >= p.channels) continue;
          float y = MultiplyAdd(totals[thread].values[i], thread.Load(p.x_scale + row),
                                thread.LoadConstant(p.bias + channel));
          if (p.activated) y = elementwise::Activated(p.function, y);
          if (p.relu) y = y > 0 ? y : 0.0f;
          thread.Store(p.y + row * p.channels + channel, y);
        }
      });
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  constexpr int kBlockChannels = Linear::kWarps * kTileChannels;
  fuselage::cuda::Launch<Linear>(
      {(params.rows + Linear::kRows - 1) / Linear::kRows, (params.channels + kBlockChannels - 1) / kBlockChannels, 1},
      Linear::kSharedBytes, params, stream);
}

}  // namespace fuselage::int8::linear_groups::cuda

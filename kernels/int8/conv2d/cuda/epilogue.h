// From accumulators in mma's layout to the output in memory.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_EPILOGUE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_EPILOGUE_H_

#include <cstdint>

#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// A block's tile of the result, kRows output pixels by kColumns output channels, split among its warps.
template <int kTileRows, int kTileColumns, int kWarpsDown, int kWarpsAcross>
struct Tile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static constexpr int kWarps = kWarpsDown * kWarpsAcross;
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kRowFragments = kRows / kWarpsDown / 16;
  static constexpr int kColumnFragments = kColumns / kWarpsAcross / 8;
  static_assert(kColumnFragments % 2 == 0, "ldmatrix.x4 loads two at once");

  // The first of a warp.
  FUSELAGE_DEVICE static int Row(Warp warp) { return warp.index() % kWarpsDown * kRowFragments * 16; }
  FUSELAGE_DEVICE static int Column(Warp warp) { return warp.index() / kWarpsDown * kColumnFragments * 8; }

  struct Accumulators {
    Lanes<Vector<int32_t, 4>> fragments[kRowFragments][kColumnFragments];
  };

  // The result's codes on their way to memory. Rows are a multiple of 16 bytes, and not of 128, apart: the pairs of
  // codes that a warp stores at once lie in different banks.
  static constexpr int kStagingPitch = kColumns + 16;
  static constexpr int kStagingBytes = kRows * kStagingPitch;
};

FUSELAGE_DEVICE uint8_t ToOutputCode(const Params& p, int32_t acc, int32_t bias, float multiplier, uint8_t residual) {
  float v = ::fuselage::cuda::Rescale(acc + bias, multiplier);
  if (p.residual != nullptr) {
    v = ::fuselage::cuda::AddResidual(v, (residual ^ p.residual_flip) - p.residual_zero_point, p.residual_multiplier);
  }
  return static_cast<uint8_t>(::fuselage::cuda::ToCode(v, p.codes) ^ p.output_flip);
}

FUSELAGE_DEVICE float ToOutputFloat(const Params& p, int32_t acc, int32_t offset, float scale, float bias) {
  const float v = ::fuselage::cuda::DequantizeAccumulator(acc + offset, scale, bias);
  return p.float_relu && v < 0 ? 0.0f : v;
}

// Calls f(row, column, values) for each pair of neighbouring accumulators of a thread: int32_t[2].
template <typename Tile, typename F>
FUSELAGE_DEVICE void ForPairs(Warp warp, Thread thread, typename Tile::Accumulators& accumulators, F f) {
  FUSELAGE_UNROLL
  for (int i = 0; i < Tile::kRowFragments; ++i) {
    FUSELAGE_UNROLL
    for (int j = 0; j < Tile::kColumnFragments; ++j) {
      FUSELAGE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int row = Tile::Row(warp) + 16 * i + 8 * half + thread.lane() / 4;
        const int column = Tile::Column(warp) + 8 * j + 2 * (thread.lane() % 4);
        f(row, column, accumulators.fragments[i][j][thread].values + 2 * half);
      }
    }
  }
}

// Calls f(row, column) for each 16 channels of the tile that are the thread's to copy.
template <typename Tile, typename F>
FUSELAGE_DEVICE void ForChunks(Thread thread, F f) {
  constexpr int kChunks = Tile::kColumns / 16;
  static_assert(Tile::kRows * kChunks % Tile::kThreads == 0);
  FUSELAGE_UNROLL
  for (int i = 0; i < Tile::kRows * kChunks / Tile::kThreads; ++i) {
    const int chunk = thread.index() + i * Tile::kThreads;
    f(chunk / kChunks, chunk % kChunks * 16);
  }
}

// Stores a block's sums as they are, for Reduce; `partial` is [rows, padded_channels] of its split.
template <typename Tile>
FUSELAGE_DEVICE void StorePartial(Block& block, const Params& p, int32_t* partial, int first_row, int first_channel,
                                  PerWarp<typename Tile::Accumulators, Tile::kWarps>& accumulators) {
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      ForPairs<Tile>(warp, thread, accumulators[warp], [&](int row, int column, const int32_t* values) {
        if (first_row + row >= p.rows) return;
        int32_t* to = partial + int64_t{first_row + row} * p.padded_channels + first_channel + column;
        thread.Store(reinterpret_cast<Vector<int32_t, 2>*>(to), Vector<int32_t, 2>{{values[0], values[1]}});
      });
    });
  });
}

// Stores a block's results; pixel(row) is the output pixel of a row of the tile, negative where there is none. Uses
// Tile::kStagingBytes of shared memory from its start.
template <typename Tile, typename Pixel>
FUSELAGE_DEVICE void StoreOutput(Block& block, const Params& p, int first_channel,
                                 PerWarp<typename Tile::Accumulators, Tile::kWarps>& accumulators, Pixel pixel) {
  if (p.float_bias != nullptr) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        ForPairs<Tile>(warp, thread, accumulators[warp], [&](int row, int column, const int32_t* values) {
          const int64_t index = pixel(row);
          if (index < 0) return;
          for (int i = 0; i < 2; ++i) {
            const int channel = first_channel + column + i;
            if (channel >= p.out_channels) return;
            thread.Store(static_cast<float*>(p.output) + index * p.out_channels + channel,
                         ToOutputFloat(p, values[i], thread.Load(p.bias + channel), thread.Load(p.multiplier + channel),
                                       thread.Load(p.float_bias + channel)));
          }
        });
      });
    });
    return;
  }

  // Rows of whole 16-byte pieces move as such, the others byte by byte.
  const bool aligned = p.out_channels % 16 == 0;
  if (p.residual != nullptr) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        ForChunks<Tile>(thread, [&](int row, int column) {
          const int64_t index = pixel(row);
          const int channel = first_channel + column;
          Vector<uint8_t, 16> codes = {};
          if (index >= 0 && channel < p.out_channels) {
            const uint8_t* from = p.residual + index * p.out_channels + channel;
            if (aligned) {
              codes = thread.Load(reinterpret_cast<const Vector<uint8_t, 16>*>(from));
            } else {
              for (int i = 0; i < 16; ++i) {
                if (channel + i < p.out_channels) codes.values[i] = thread.Load(from + i);
              }
            }
          }
          thread.StoreShared(row * Tile::kStagingPitch + column, codes);
        });
      });
    });
  }
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      ForPairs<Tile>(warp, thread, accumulators[warp], [&](int row, int column, const int32_t* values) {
        const uint32_t offset = row * Tile::kStagingPitch + column;
        const int channel = first_channel + column;
        const auto bias = thread.Load(reinterpret_cast<const Vector<int32_t, 2>*>(p.bias + channel));
        const auto multiplier = thread.Load(reinterpret_cast<const Vector<float, 2>*>(p.multiplier + channel));
        Vector<uint8_t, 2> codes = {};
        if (p.residual != nullptr) codes = thread.LoadShared<Vector<uint8_t, 2>>(offset);
        for (int i = 0; i < 2; ++i) {
          codes.values[i] = ToOutputCode(p, values[i], bias.values[i], multiplier.values[i], codes.values[i]);
        }
        thread.StoreShared(offset, codes);
      });
    });
  });
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      ForChunks<Tile>(thread, [&](int row, int column) {
        const int64_t index = pixel(row);
        const int channel = first_channel + column;
        if (index < 0 || channel >= p.out_channels) return;
        const auto codes = thread.LoadShared<Vector<uint8_t, 16>>(row * Tile::kStagingPitch + column);
        uint8_t* to = static_cast<uint8_t*>(p.output) + index * p.out_channels + channel;
        if (aligned) {
          thread.Store(reinterpret_cast<Vector<uint8_t, 16>*>(to), codes);
        } else {
          for (int i = 0; i < 16; ++i) {
            if (channel + i < p.out_channels) thread.Store(to + i, codes.values[i]);
          }
        }
      });
    });
  });
}

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_EPILOGUE_H_

// From accumulators in mma's layout to the output in memory.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CUDA_EPILOGUE_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CUDA_EPILOGUE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/codes.h"
#include "kernels/int8/conv2d/cuda/params.h"

namespace fuselage::int8::conv2d::cuda {

// Sums on their way through shared memory, of so many columns at a time. Rows are 8 words more than a multiple of 32
// apart: the pairs that a warp stores at once lie in different banks.
constexpr int kSumColumns = 32;
constexpr int kSumsPitch = 4 * (kSumColumns + 8);

// A block's tile of the result, kRows output pixels by kColumns output channels, split among its warps. kForHopper: by
// what sm_90a alone has, bulk copies, and where each warp has all columns, products by groups of four warps, each of
// which has 16 rows of every 64 (Warp::MultiplyInGroup). kTeamCount: so many teams of kWarps each multiply every
// kTeams-th step (Gemm).
template <int kTileRows, int kTileColumns, int kWarpsDown, int kWarpsAcross, bool kForHopper = false,
          int kTeamCount = 1>
struct Tile {
  static constexpr bool kHopper = kForHopper, kInGroups = kForHopper && kWarpsAcross == 1;
  static constexpr int kTeams = kTeamCount;
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static constexpr int kWarps = kWarpsDown * kWarpsAcross;
  static constexpr int kThreads = kWarps * kWarpSize;
  static constexpr int kRowFragments = kRows / kWarpsDown / 16;
  static constexpr int kColumnFragments = kColumns / kWarpsAcross / 8;
  // Blocks that share a multiprocessor: at most 512 threads, or 256 with more than 128 registers each.
  static constexpr int kBlocks = (kRowFragments * kColumnFragments > 16 ? 8 : 16) / kWarps;
  static_assert(kColumnFragments % 2 == 0, "ldmatrix.x4 loads two at once");

  static_assert(!kInGroups || kWarpsDown % 4 == 0);

  // Of a team.
  FUSELAGE_DEVICE static int IndexOf(Thread thread) { return kTeams > 1 ? thread.index() % kThreads : thread.index(); }

  // The first of a warp, and how far a fragment's are behind those of the one before.
  FUSELAGE_DEVICE static int Row(Warp warp) {
    if (kInGroups) return warp.index() / 4 * kRowFragments * 64 + warp.index() % 4 * 16;
    return warp.index() % kWarpsDown * kRowFragments * 16;
  }
  static constexpr int kFragmentRows = kInGroups ? 64 : 16;
  FUSELAGE_DEVICE static int Column(Warp warp) {
    const int index = kTeams > 1 ? warp.index() % kWarps : warp.index();
    return index / kWarpsDown * kColumnFragments * 8;
  }

  struct Accumulators {
    Lanes<Vector<int32_t, 4>> fragments[kRowFragments][kColumnFragments];

    FUSELAGE_DEVICE void Clear(Thread thread) {
      FUSELAGE_UNROLL
      for (int i = 0; i < kRowFragments; ++i) {
        FUSELAGE_UNROLL
        for (int j = 0; j < kColumnFragments; ++j) fragments[i][j][thread] = {};
      }
    }
  };

  // The result's codes on their way through shared memory. The 16-byte pieces of a row are permuted, so that the pairs
  // of codes that a warp stores at once, of eight rows, lie in different banks, and so do the pieces that it copies.
  static constexpr int kStagingBytes = kRows * kColumns;
  static constexpr int kConstantBytes = 8 * kColumns;  // See KeepConstants.
  // Sums, and the ticket of a split, lie behind a block's barriers, which nothing may overwrite.
  static constexpr int kSums = kHopper ? 16 * kStep : 0;
  static constexpr int kSumsEnd = kSums + kRows * kSumsPitch;
  FUSELAGE_DEVICE static uint32_t StagingPlace(int row, int column) {
    static_assert(kColumns == 64 || kColumns == 128);
    const int with = kColumns == 64 ? row >> 1 & 3 : row & 7;
    return row * kColumns + ((column >> 4 ^ with) << 4) + (column & 15);
  }
};

// Residual i of four, with its top bit as Params::residual_flip wants it.
FUSELAGE_DEVICE float AddResidual(const Params& p, float v, uint32_t residuals, int i) {
  const float residual = ::fuselage::cuda::CodeLess(p.residual_zero_point, residuals, i);
  return ::fuselage::cuda::MultiplyAdd(residual, p.residual_multiplier, v);
}
// The residual is there if kResidual.
template <bool kResidual>
FUSELAGE_DEVICE float ToOutputValue(const Params& p, int32_t acc, int32_t bias, float multiplier, uint32_t residuals,
                                    int i) {
  const float v = ::fuselage::cuda::Rescale(acc + bias, multiplier);
  if constexpr (!kResidual) return v;
  return AddResidual(p, v, residuals, i);
}

FUSELAGE_DEVICE float Activated(const Params& p, float v) {
  return p.activated ? ::fuselage::cuda::Multiply(elementwise::Activated(p.function, v), p.function_multiplier) : v;
}
FUSELAGE_DEVICE uint8_t ToActivatedCode(const Params& p, int32_t acc, int32_t bias, float multiplier,
                                        uint8_t residual) {
  const float v = p.residual != nullptr ? ToOutputValue<true>(p, acc, bias, multiplier, residual ^ p.residual_flip, 0)
                                        : ToOutputValue<false>(p, acc, bias, multiplier, 0, 0);
  return static_cast<uint8_t>(::fuselage::cuda::ToCode(Activated(p, v), p.codes));
}

// Without the function of an activation.
FUSELAGE_DEVICE float ToOutputFloat(const Params& p, int32_t acc, int32_t offset, float scale, float bias) {
  const float v = ::fuselage::cuda::DequantizeAccumulator(acc + offset, scale, bias);
  return p.float_relu && v < 0 ? 0.0f : v;
}

// For each pair of neighbouring columns of a thread: constants = load(column); and for each of its rows
// f(row, column, values, constants), with the accumulators int32_t values[2].
template <typename Tile, typename Load, typename F>
FUSELAGE_DEVICE void ForPairs(Warp warp, Thread thread, typename Tile::Accumulators& accumulators, Load load, F f) {
  FUSELAGE_UNROLL
  for (int j = 0; j < Tile::kColumnFragments; ++j) {
    const int column = Tile::Column(warp) + 8 * j + 2 * (thread.lane() % 4);
    const auto constants = load(column);
    FUSELAGE_UNROLL
    for (int i = 0; i < Tile::kRowFragments; ++i) {
      FUSELAGE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int row = Tile::Row(warp) + Tile::kFragmentRows * i + 8 * half + thread.lane() / 4;
        f(row, column, accumulators.fragments[i][j][thread].values + 2 * half, constants);
      }
    }
  }
}

// Of two neighbouring channels; padded channels have zeros.
struct ChannelPair {
  Vector<int32_t, 2> bias;
  Vector<float, 2> multiplier;
};
FUSELAGE_DEVICE ChannelPair LoadChannelPair(const Params& p, Thread thread, int channel) {
  ChannelPair pair;
  pair.bias = thread.LoadConstant(reinterpret_cast<const Vector<int32_t, 2>*>(p.bias + channel));
  pair.multiplier = thread.LoadConstant(reinterpret_cast<const Vector<float, 2>*>(p.multiplier + channel));
  return pair;
}

// Those of a tile's channels, to shared memory at `place`, so that an epilogue does not wait for one pair after the
// other: the caller has a barrier before it calls KeptPair.
template <typename Tile>
FUSELAGE_DEVICE void KeepConstants(const Params& p, Thread thread, uint32_t place, int first_channel) {
  static_assert(Tile::kColumns / 4 <= Tile::kThreads);
  if (4 * thread.index() >= Tile::kColumns) return;
  const int channel = first_channel + 4 * thread.index();
  const uint32_t to = place + 16 * thread.index();
  using Four = Vector<uint32_t, 4>;
  thread.StoreShared(to, thread.LoadConstant(reinterpret_cast<const Four*>(p.bias + channel)));
  thread.StoreShared(to + 4 * Tile::kColumns,
                     thread.LoadConstant(reinterpret_cast<const Four*>(p.multiplier + channel)));
}
template <typename Tile>
FUSELAGE_DEVICE ChannelPair KeptPair(Thread thread, uint32_t place, int column) {
  return {thread.LoadShared<Vector<int32_t, 2>>(place + 4 * column),
          thread.LoadShared<Vector<float, 2>>(place + 4 * (Tile::kColumns + column))};
}

// Calls f(row, column) for each 16 channels of the tile that are the thread's to copy.
template <typename Tile, bool kUnrolled, typename F>
FUSELAGE_DEVICE void ForChunks(Thread thread, F f) {
  constexpr int kOfRow = Tile::kColumns / 16, kEach = Tile::kRows * kOfRow / Tile::kThreads;
  static_assert(kEach * Tile::kThreads == Tile::kRows * kOfRow);
  const auto copy = [&](int i) {
    const int chunk = thread.index() + i * Tile::kThreads;
    f(chunk / kOfRow, chunk % kOfRow * 16);
  };
  if constexpr (kUnrolled) {
    FUSELAGE_UNROLL
    for (int i = 0; i < kEach; ++i) copy(i);
  } else {
    FUSELAGE_NO_UNROLL
    for (int i = 0; i < kEach; ++i) copy(i);
  }
}

// A phase that takes a ticket of tile block.x() for split block.z(), and whether it was the last: in the phase after
// it. Uses shared memory at `place`.
FUSELAGE_DEVICE void TakeTileTicket(Block& block, const Params& p, uint32_t place) {
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      if (thread.index() == 0) thread.StoreShared(place, thread.TakeTicket(p.tickets + block.x(), p.splits));
    });
  });
}
FUSELAGE_DEVICE bool HasLastTicket(const Params& p, Thread thread, uint32_t place) {
  return thread.LoadShared<uint32_t>(place) == static_cast<uint32_t>(p.splits - 1);
}

// Adds the sums of a tile's splits, block.z() of tile block.x(), in the block that comes last, in whichever order the
// others came: integer sums. False in the others. Uses shared memory at Tile::kSums.
template <typename Tile>
FUSELAGE_DEVICE bool AddSplits(Block& block, const Params& p,
                               PerWarp<typename Tile::Accumulators, Tile::kWarps>& accumulators) {
  constexpr int kFragments = Tile::kRowFragments * Tile::kColumnFragments;
  // Loads that do not wait for each other: as many as registers allow.
  constexpr int kLoads = kFragments > 8 ? 8 : 16;
  constexpr int kSplits = kFragments > kLoads ? 1 : kLoads / kFragments, kGroup = kLoads / kSplits;
  using Sums = Vector<int32_t, 4>;
  const auto sums = [&](Warp warp, Thread thread, int fragment) -> Sums& {
    return accumulators[warp].fragments[fragment / Tile::kColumnFragments][fragment % Tile::kColumnFragments][thread];
  };
  const auto partial = [&](Thread thread, int split, int fragment) {
    return reinterpret_cast<Sums*>(p.partial) + thread.index() +
           ((int64_t{block.x()} * p.splits + split) * kFragments + fragment) * Tile::kThreads;
  };
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      FUSELAGE_UNROLL
      for (int i = 0; i < kFragments; ++i) thread.Store(partial(thread, block.z(), i), sums(warp, thread, i));
      thread.Fence();
    });
  });
  TakeTileTicket(block, p, Tile::kSums);
  bool last = false;
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      last = HasLastTicket(p, thread, Tile::kSums);
      if (!last) return;
      thread.Fence();
      FUSELAGE_UNROLL
      for (int group = 0; group < kFragments; group += kGroup) {
        FUSELAGE_NO_UNROLL
        for (int first = 0; first < p.splits; first += kSplits) {
          Sums more[kSplits][kGroup];
          FUSELAGE_UNROLL
          for (int s = 0; s < kSplits; ++s) {
            const int split = first + s;
            FUSELAGE_UNROLL
            for (int i = 0; i < kGroup; ++i) {
              more[s][i] = {};
              if (split < p.splits && split != block.z()) more[s][i] = thread.Load(partial(thread, split, group + i));
            }
          }
          FUSELAGE_UNROLL
          for (int i = 0; i < kGroup; ++i) {
            FUSELAGE_UNROLL
            for (int s = 0; s < kSplits; ++s) {
              FUSELAGE_UNROLL
              for (int k = 0; k < 4; ++k) sums(warp, thread, group + i).values[k] += more[s][i].values[k];
            }
          }
        }
      }
    });
  });
  return last;
}

// Stores a block's sums as they are, for Finish.
template <typename Tile>
FUSELAGE_DEVICE void StoreSums(Block& block, const Params& p, int first_row, int first_channel,
                               PerWarp<typename Tile::Accumulators, Tile::kWarps>& accumulators) {
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      ForPairs<Tile>(
          warp, thread, accumulators[warp], [&](int column) { return p.sums + first_channel + column; },
          [&](int row, int, const int32_t* values, int32_t* to) {
            if (first_row + row >= p.rows) return;
            to += int64_t{first_row + row} * p.padded_channels;
            thread.Store(reinterpret_cast<Vector<int32_t, 2>*>(to), Vector<int32_t, 2>{{values[0], values[1]}});
          });
    });
  });
}

// Starts to fetch a block's residuals to shared memory at staging + StagingPlace: the caller commits the
// copies, waits for them, and has a barrier before StoreCodes.
template <typename Tile, typename Pixel>
FUSELAGE_DEVICE void FetchResidual(const Params& p, Thread thread, uint32_t staging, int first_channel, Pixel pixel) {
  const auto from = [&](int row, int column) {
    return p.residual + pixel(row) * p.out_channels + first_channel + column;
  };
  if (p.out_channels % 16 == 0) {
    ForChunks<Tile, true>(thread, [&](int row, int column) {
      const bool inside = pixel(row) >= 0 && first_channel + column < p.out_channels;
      CopyOrPad<16>(thread, staging + Tile::StagingPlace(row, column), from(row, column), inside, p.padding);
    });
    return;
  }
  ForChunks<Tile, false>(thread, [&](int row, int column) {
    const int channels = pixel(row) >= 0 ? p.out_channels - first_channel - column : 0;
    const uint8_t* first = from(row, column);
    Vector<uint8_t, 16> codes;
    FUSELAGE_UNROLL
    for (int i = 0; i < 16; ++i) codes.values[i] = i < channels ? thread.Load(first + i) : uint8_t{0};
    thread.StoreShared(staging + Tile::StagingPlace(row, column), codes);
  });
}

// The codes of a block, into shared memory at staging + StagingPlace. If kResidual, residuals are there before. If
// kPlain, p.codes are. constants(thread, column): the ChannelPair of a column of the tile.
template <typename Tile, bool kResidual, bool kPlain, typename Constants>
FUSELAGE_DEVICE void StageCodes(Block& block, const Params& p, uint32_t staging, Constants constants,
                                PerWarp<typename Tile::Accumulators, Tile::kWarps>& accumulators) {
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      const int first_row = Tile::Row(warp) + thread.lane() / 4;
      uint32_t first = 0;  // The place of a column's first pair.
      ForPairs<Tile>(
          warp, thread, accumulators[warp],
          [&](int column) {
            first = staging + Tile::StagingPlace(first_row, column);
            return constants(thread, column);
          },
          [&](int row, int, const int32_t* values, const ChannelPair& pair) {
            const uint32_t offset = first + (row - first_row) * Tile::kColumns;
            uint32_t residuals = 0;
            if constexpr (kResidual) residuals = thread.LoadShared<uint16_t>(offset) ^ p.residual_flip * 0x0101u;
            float v[2];
            FUSELAGE_UNROLL
            for (int i = 0; i < 2; ++i) {
              v[i] =
                  ToOutputValue<kResidual>(p, values[i], pair.bias.values[i], pair.multiplier.values[i], residuals, i);
            }
            thread.StoreShared(offset, static_cast<uint16_t>(::fuselage::cuda::TwoCodes<kPlain>(v[0], v[1], p.codes)));
          });
    });
  });
}

// Four neighbouring channels, from `channel` on, of which there are at least one.
using Four = Vector<float, 4>;

// Without the function of an activation: where the output is floats; `channels` of them.
FUSELAGE_DEVICE Four FourFloats(const Params& p, Thread thread, const Vector<int32_t, 4>& sums, int channel,
                                int channels) {
  Four values = {};
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i >= channels) continue;
    values.values[i] =
        ToOutputFloat(p, sums.values[i], thread.LoadConstant(p.bias + channel + i),
                      thread.LoadConstant(p.multiplier + channel + i), thread.LoadConstant(p.float_bias + channel + i));
  }
  return values;
}
// What it takes, beside the sums, to make codes of them; the channel is a multiple of 4.
struct FourConstants {
  Vector<int32_t, 4> bias;
  Four multiplier;
};
FUSELAGE_DEVICE FourConstants LoadFourConstants(const Params& p, Thread thread, int channel) {
  return {thread.LoadConstant(reinterpret_cast<const Vector<int32_t, 4>*>(p.bias + channel)),
          thread.LoadConstant(reinterpret_cast<const Four*>(p.multiplier + channel))};
}
// Of which there may be fewer: `channels`; `index` is that of the first output.
FUSELAGE_DEVICE uint32_t LoadFourResiduals(const Params& p, Thread thread, int channels, int64_t index) {
  return p.residual != nullptr ? ::fuselage::cuda::LoadWord(thread, p.residual + index, channels) : 0;
}
FUSELAGE_DEVICE Four FourValues(const Params& p, const Vector<int32_t, 4>& sums, const FourConstants& constants,
                                uint32_t residuals) {
  Four values;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    values.values[i] =
        ToOutputValue<false>(p, sums.values[i], constants.bias.values[i], constants.multiplier.values[i], 0, 0);
  }
  if (p.residual == nullptr) return values;
  residuals ^= ::fuselage::cuda::Splat(p.residual_flip);
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    values.values[i] = AddResidual(p, values.values[i], residuals, i);
  }
  return values;
}
FUSELAGE_DEVICE Four FourValues(const Params& p, Thread thread, const Vector<int32_t, 4>& sums, int channel,
                                int channels, int64_t index) {
  return FourValues(p, sums, LoadFourConstants(p, thread, channel), LoadFourResiduals(p, thread, channels, index));
}

// Applies the function of an activation to one value after the other, which go round: it is long.
template <int kFours>
FUSELAGE_DEVICE void Activate(const Params& p, Four (&values)[kFours]) {
  if (!p.activated) return;
  FUSELAGE_NO_UNROLL
  for (int n = 0; n < 4 * kFours; ++n) {
    const float first = values[0].values[0];
    FUSELAGE_UNROLL
    for (int i = 1; i < 4 * kFours; ++i) values[(i - 1) / 4].values[(i - 1) % 4] = values[i / 4].values[i % 4];
    values[kFours - 1].values[3] = Activated(p, first);
  }
}

FUSELAGE_DEVICE Vector<uint8_t, 4> FourCodes(const Params& p, const Four& values) {
  Vector<uint8_t, 4> codes;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    codes.values[i] = static_cast<uint8_t>(::fuselage::cuda::ToCode(values.values[i], p.codes));
  }
  return codes;
}

// Stores the floats of `channels`; `index` is that of the first output.
FUSELAGE_DEVICE void StoreFourFloats(const Params& p, Thread thread, const Four& values, int channels, int64_t index) {
  float* to = static_cast<float*>(p.output) + index;
  if (p.out_channels % 4 == 0) {
    thread.Store(reinterpret_cast<Four*>(to), values);
    return;
  }
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < channels) thread.Store(to + i, values.values[i]);
  }
}

// The same as StoreCodes, where the output is floats. Uses shared memory from Tile::kSums to kSumsEnd.
template <typename Tile, typename Pixel>
FUSELAGE_DEVICE void StoreFloats(Block& block, const Params& p, int first_channel,
                                 PerWarp<typename Tile::Accumulators, Tile::kWarps>& accumulators, Pixel pixel) {
  FUSELAGE_NO_UNROLL
  for (int first = 0; first < Tile::kColumns; first += kSumColumns) {
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        ForPairs<Tile>(
            warp, thread, accumulators[warp], [](int column) { return column; },
            [&](int row, int column, const int32_t* values, int) {
              if (static_cast<unsigned>(column - first) >= kSumColumns) return;
              thread.StoreShared(Tile::kSums + row * kSumsPitch + 4 * (column - first),
                                 Vector<int32_t, 2>{{values[0], values[1]}});
            });
      });
    });
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        constexpr int kFours = kSumColumns / 4;
        static_assert(Tile::kThreads % kFours == 0);
        const int column = thread.index() % kFours * 4, channel = first_channel + first + column;
        const int channels = p.out_channels - channel < 4 ? p.out_channels - channel : 4;
        FUSELAGE_NO_UNROLL
        for (int row = thread.index() / kFours; row < Tile::kRows; row += Tile::kThreads / kFours) {
          const int64_t index = pixel(row);
          if (index < 0 || channels <= 0) continue;
          const auto sums = thread.LoadShared<Vector<int32_t, 4>>(Tile::kSums + row * kSumsPitch + 4 * column);
          StoreFourFloats(p, thread, FourFloats(p, thread, sums, channel, channels), channels,
                          index * p.out_channels + channel);
        }
      });
    });
  }
}

// Stores a block's codes; pixel(row) is the output pixel of a row of the tile, negative where there is none. Uses
// Tile::kStagingBytes of shared memory at `staging`, where FetchResidual left the residuals, if there are; `constants`
// as StageCodes.
template <typename Tile, typename Constants, typename Pixel>
FUSELAGE_DEVICE void StoreCodes(Block& block, const Params& p, uint32_t staging, int first_channel, Constants constants,
                                PerWarp<typename Tile::Accumulators, Tile::kWarps>& accumulators, Pixel pixel) {
  const auto stage = [&](auto residual, auto plain) {
    StageCodes<Tile, residual.value, plain.value>(block, p, staging, constants, accumulators);
  };
  const auto with = [&](auto residual) {
    if (::fuselage::cuda::IsPlain(p.codes)) {
      stage(residual, std::true_type());
    } else {
      stage(residual, std::false_type());
    }
  };
  if (p.residual != nullptr) {
    with(std::true_type());
  } else {
    with(std::false_type());
  }
  block.Phase([&](Warp warp) {
    warp.ForThreads([&](Thread thread) {
      const auto to = [&](int row, int column) {
        return static_cast<uint8_t*>(p.output) + pixel(row) * p.out_channels + first_channel + column;
      };
      const auto codes = [&](int row, int column) {
        return thread.LoadShared<Vector<uint8_t, 16>>(staging + Tile::StagingPlace(row, column));
      };
      if (p.out_channels % 16 == 0) {
        ForChunks<Tile, true>(thread, [&](int row, int column) {
          if (pixel(row) < 0 || first_channel + column >= p.out_channels) return;
          thread.Store(reinterpret_cast<Vector<uint8_t, 16>*>(to(row, column)), codes(row, column));
        });
        return;
      }
      ForChunks<Tile, false>(thread, [&](int row, int column) {
        if (pixel(row) < 0) return;
        const Vector<uint8_t, 16> some = codes(row, column);
        for (int i = 0; i < 16; ++i) {
          if (first_channel + column + i < p.out_channels) thread.Store(to(row, column) + i, some.values[i]);
        }
      });
    });
  });
}

// Stores four codes to outputs from `index` on, or fewer where `channels`, those that there are, is less.
FUSELAGE_DEVICE void StoreFourCodes(const Params& p, Thread thread, const Vector<uint8_t, 4>& codes, int channels,
                                    int64_t index) {
  uint8_t* to = static_cast<uint8_t*>(p.output) + index;
  if (p.out_channels % 4 == 0) {
    thread.Store(reinterpret_cast<Vector<uint8_t, 4>*>(to), codes);
    return;
  }
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < channels) thread.Store(to + i, codes.values[i]);
  }
}

// Activates four values, and stores them as what the output is.
FUSELAGE_DEVICE void StoreFour(const Params& p, Thread thread, const Four& four, int channels, int64_t index) {
  Four values[] = {four};
  Activate(p, values);
  if (p.float_bias != nullptr) {
    StoreFourFloats(p, thread, values[0], channels, index);
  } else {
    StoreFourCodes(p, thread, FourCodes(p, values[0]), channels, index);
  }
}

}  // namespace fuselage::int8::conv2d::cuda

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CUDA_EPILOGUE_H_

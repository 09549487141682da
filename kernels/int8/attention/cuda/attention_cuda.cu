#include "kernels/int8/attention/cuda/attention_cuda.h"

#include "ir/base/attention_weight.h"
#include "kernels/attention/cuda/row_score.h"
#include "kernels/cuda/fetch.h"
#include "kernels/cuda/fragments.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::attention::cuda {
namespace {

using fuselage::attention::cuda::KeysOf;
using fuselage::attention::cuda::RowShape;
using ::fuselage::cuda::Block;
using ::fuselage::cuda::FetchLines;
using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::PerWarp;
using ::fuselage::cuda::PickBytes;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;
using ::fuselage::cuda::Warp;

constexpr float kNever = -__builtin_inff();

// A warp has 16 queries of a group. A block goes over the keys twice, kKeys at a time, as weights depend on the largest
// score of all: for that, and then for the weights. The threads that have the scores of a query and of four pairs of
// neighbouring keys, as mma lays sums out, pack their weights into what mma takes as codes of that query: k in another
// order, in which the values are loaded, too. Scores are multiplied in steps of kStep of the depth, which go through
// two buffers of shared memory: rows of queries, and of keys, their 16-byte pieces permuted so that what ldmatrix takes
// at once lies in different banks; and before weights are multiplied, rows of values.
//
// Zero points: sum (q - z_q) * k is another product, of constants and keys, and sums of q and of weights are products
// with ones.
struct Attention {
  using Params = LaunchParams;
  static constexpr int kWarps = 4, kThreads = kWarps * kWarpSize;
#if __CUDA_ARCH__ >= 1000  // At three blocks' 168 registers ptxas spills.
  static constexpr int kBlocks = 2;
#else
  static constexpr int kBlocks = 3;
#endif
  static constexpr int kRows = kRowsOfABlock, kKeys = 64, kWidth = kElementsOfABlock;
  static constexpr int kStep = 64, kPieces = kStep / 16;
  static_assert(kRows == 16 * kWarps);
  static constexpr int kKeyPlace = kRows * kStep, kValuePlace = kKeyPlace + kKeys * kStep;
  static constexpr int kStageBytes = kValuePlace + kKeys * kWidth, kSharedBytes = 2 * kStageBytes;

  using Sums = Lanes<Vector<int32_t, 4>>;
  struct State {
    Lanes<float> largest[2];         // Of a thread's two queries, lane / 4 and 8 after it.
    Sums q_sums, scores[kKeys / 8];  // Sums, then bits of floats.
    Sums totals, values[kWidth / 16][2];
  };
  // Of a block: its queries, keys and elements.
  struct Part {
    int group, first_row, rows, keys, first_element;
  };
  struct Step {
    int chunk, tile, pass;
  };

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    const RowShape& s = p.shape;
    const int first_row = block.x() % p.row_blocks * kRows, left = s.group_rows - first_row;
    Part part = {block.x() / p.row_blocks, first_row, left < kRows ? left : kRows, s.keys, block.y() * kWidth};
    // Queries of one head follow each other.
    const int last = first_row % s.queries + part.rows;
    if (s.is_causal) part.keys = last < s.queries ? last : s.queries;
    if (part.keys > s.keys) part.keys = s.keys;

    PerWarp<State, kWarps> states;
    Step now = {0, 0, part.keys > 0 ? 0 : 2}, ahead = now;
    block.Phase([&](Warp warp) {
      warp.ForThreads([&](Thread thread) {
        Clear(thread, states[warp]);
        if (now.pass < 2) Fetch(p, thread, part, now, 0);
      });
      warp.CommitCopies();
      warp.WaitForCopies<0>();
    });
    for (uint32_t stage = 0; now.pass < 2; now = ahead, stage ^= kStageBytes) {
      ahead = Next(s, part, now);
      block.Phase([&](Warp warp) {
        if (ahead.pass < 2) {
          warp.ForThreads([&](Thread thread) { Fetch(p, thread, part, ahead, stage ^ kStageBytes); });
        }
        warp.CommitCopies();
        if (16 * warp.index() < part.rows) Compute(p, warp, part, now, stage, states[warp]);
        warp.WaitForCopies<0>();
      });
    }
    block.Phase(
        [&](Warp warp) { warp.ForThreads([&](Thread thread) { Store(p, part, warp, thread, states[warp]); }); });
  }

 private:
  static_assert((kStageBytes & (kStageBytes - 1)) == 0, "stages are swapped by a bit");

  FUSELAGE_DEVICE static int Chunks(const RowShape& s) { return (s.depth + kStep - 1) / kStep; }

  FUSELAGE_DEVICE static Step Next(const RowShape& s, const Part& part, Step step) {
    if (++step.chunk < Chunks(s)) return step;
    step.chunk = 0;
    if (++step.tile * kKeys < part.keys) return step;
    step.tile = 0;
    ++step.pass;
    return step;
  }

  // Of a block's rows, that of a thread's i-th query.
  FUSELAGE_DEVICE static int Row(Warp warp, Thread thread, int i) {
    return 16 * warp.index() + thread.lane() / 4 + 8 * i;
  }

  FUSELAGE_DEVICE static int RowOfAll(const RowShape& s, const Part& part, int row) {
    return part.group * s.group_rows + part.first_row + row;
  }

  FUSELAGE_DEVICE static void Clear(Thread thread, State& state) {
    for (int i = 0; i < 2; ++i) state.largest[i][thread] = kNever;
    state.totals[thread] = {};
    FUSELAGE_UNROLL
    for (int j = 0; j < kWidth / 8; ++j) state.values[j / 2][j % 2][thread] = {};
  }

  // Where pieces lie. ldmatrix takes eight rows that follow each other.
  FUSELAGE_DEVICE static uint32_t Place(int row, int piece) { return row * kStep + ((piece ^ (row >> 1 & 3)) << 4); }
  FUSELAGE_DEVICE static uint32_t PlaceOfValue(int key, int piece) {
    return kValuePlace + key * kWidth + ((piece ^ (key & 7)) << 4);
  }

  FUSELAGE_DEVICE static void Fetch(const Params& p, Thread thread, const Part& part, const Step& step,
                                    uint32_t stage) {
    const RowShape& s = p.shape;
    const int64_t row = RowOfAll(s, part, 0);
    const int64_t key = int64_t{part.group} * s.keys + step.tile * kKeys;
    const int first = step.chunk * kStep, keys = s.keys - step.tile * kKeys;
    FetchLines<kRows, kPieces, kThreads>(
        thread, {p.q.codes + row * s.depth + first, s.depth, part.rows, s.depth - first, p.q.end, p.q.flip},
        [&](int row, int piece) { return stage + Place(row, piece); });
    FetchLines<kKeys, kPieces, kThreads>(
        thread, {p.k.codes + key * s.depth + first, s.depth, keys, s.depth - first, p.k.end, p.k.flip},
        [&](int row, int piece) { return stage + kKeyPlace + Place(row, piece); });
    if (step.pass == 0 || step.chunk + 1 < Chunks(s)) return;
    FetchLines<kKeys, kWidth / 16, kThreads>(thread,
                                             {p.v.codes + key * s.width + part.first_element, s.width, keys,
                                              s.width - part.first_element, p.v.end, p.v.flip},
                                             [&](int row, int piece) { return stage + PlaceOfValue(row, piece); });
  }

  FUSELAGE_DEVICE static void Compute(const Params& p, Warp warp, const Part& part, const Step& step, uint32_t stage,
                                      State& state) {
    if (step.chunk == 0) {
      warp.ForThreads([&](Thread thread) {
        state.q_sums[thread] = {};
        FUSELAGE_UNROLL
        for (int j = 0; j < kKeys / 8; ++j) state.scores[j][thread] = {};
      });
    }
    MultiplyKeys(p, warp, stage, state);
    if (step.chunk + 1 < Chunks(p.shape)) return;
    warp.ForThreads([&](Thread thread) { Score(p, part, warp, thread, step.tile * kKeys, state); });
    if (step.pass == 0) {
      FindLargest(warp, state);
    } else {
      MultiplyValues(p, warp, part, stage, state);
    }
  }

  FUSELAGE_DEVICE static void MultiplyKeys(const Params& p, Warp warp, uint32_t stage, State& state) {
    Lanes<Vector<uint32_t, 4>> q, addend, pair;
    Lanes<uint32_t> offsets, one;
    warp.ForThreads([&](Thread thread) {
      one[thread] = Splat(1);
      const uint32_t word = Splat(static_cast<uint8_t>(p.q_addend));
      addend[thread] = {{word, word, word, word}};
    });
    FUSELAGE_UNROLL
    for (int half = 0; half < kStep / 32; ++half) {
      warp.ForThreads([&](Thread thread) {
        offsets[thread] = (stage + Place(16 * warp.index() + thread.lane() % 16, thread.lane() / 16)) ^ half * 32;
      });
      warp.LoadMatrices(offsets, &q);
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) q[thread].values[i] ^= Splat(p.q.flip);
      });
      if (p.k.zero_point != 0) warp.MultiplyCodes<int8_t>(q, one, one, &state.q_sums);
      FUSELAGE_UNROLL
      for (int j = 0; j < kKeys / 8; j += 2) {
        warp.ForThreads([&](Thread thread) {
          const uint32_t first = Place(thread.lane() / 16 * 8 + thread.lane() % 8, thread.lane() / 8 % 2);
          offsets[thread] = ((stage + kKeyPlace + first) ^ half * 32) + 8 * j * kStep;
        });
        warp.LoadMatrices(offsets, &pair);
        FUSELAGE_UNROLL
        for (int i = 0; i < 2; ++i) {
          Lanes<uint32_t> k[2];
          warp.ForThreads([&](Thread thread) {
            k[0][thread] = pair[thread].values[2 * i] ^ Splat(p.k.flip);
            k[1][thread] = pair[thread].values[2 * i + 1] ^ Splat(p.k.flip);
          });
          Sums* scores = &state.scores[j + i];
          warp.MultiplyCodes<int8_t>(q, k[0], k[1], scores);
          if (p.q.zero_point != 0) warp.MultiplyCodes<int8_t>(addend, k[0], k[1], scores);
          if (p.q_addend_twice) warp.MultiplyCodes<int8_t>(addend, k[0], k[1], scores);
        }
      }
    }
  }

  // Two of the rows of all groups, and how many keys from the tile's first on they look at.
  struct Queries {
    int rows[2], keys[2];
  };

  // f(i, key, &bits) for each score of a thread: of its i-th query, and its key of the tile.
  template <typename F>
  FUSELAGE_DEVICE static void ForScores(Thread thread, State& state, F f) {
    FUSELAGE_UNROLL
    for (int j = 0; j < kKeys / 8; ++j) {
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        f(i / 2, 8 * j + 2 * (thread.lane() % 4) + i % 2, &state.scores[j][thread].values[i]);
      }
    }
  }

  // Sums become scores, -inf where a query does not look at the key.
  FUSELAGE_DEVICE static void Score(const Params& p, const Part& part, Warp warp, Thread thread, int first_key,
                                    State& state) {
    const RowShape& s = p.shape;
    uint32_t addends[2];
    Queries queries;
    FUSELAGE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const auto zero_point = static_cast<uint32_t>(p.q.zero_point) * static_cast<uint32_t>(s.depth);
      addends[i] = static_cast<uint32_t>(p.k.zero_point) *
                   (zero_point - static_cast<uint32_t>(state.q_sums[thread].values[2 * i]));
      const int row = Row(warp, thread, i);
      queries.rows[i] = RowOfAll(s, part, row);
      queries.keys[i] = row < part.rows ? KeysOf(s, queries.rows[i]) - first_key : 0;
    }
    ForScores(thread, state, [&](int i, int, int32_t* bits) {
      const auto sum = static_cast<int32_t>(static_cast<uint32_t>(*bits) + addends[i]);
      *bits = OneLane::BitsOf(fuselage::cuda::Rescale(sum, p.score_multiplier));
    });
    if (s.softcap != 0 || s.mask != nullptr || s.bool_mask != nullptr) Adjust(s, thread, queries, first_key, state);
    if (kKeys <= queries.keys[0] && kKeys <= queries.keys[1]) return;
    ForScores(thread, state, [&](int i, int key, int32_t* bits) {
      if (key >= queries.keys[i]) *bits = OneLane::BitsOf(kNever);
    });
  }

  // Softcap and mask, of two fragments after the other two, which go round: the code is long, and registers are dear.
  FUSELAGE_DEVICE static void Adjust(const RowShape& s, Thread thread, const Queries& queries, int first_key,
                                     State& state) {
    constexpr int kFragments = kKeys / 8, kAtOnce = 2;
    int64_t offsets[2];
    FUSELAGE_UNROLL
    for (int i = 0; i < 2; ++i) {
      offsets[i] = fuselage::attention::cuda::MaskOffset(s, queries.rows[i]) + first_key * s.mask_key_stride;
    }
    FUSELAGE_NO_UNROLL
    for (int first = 0; first < kFragments; first += kAtOnce) {
      float scores[4 * kAtOnce];
      FUSELAGE_UNROLL
      for (int n = 0; n < 4 * kAtOnce; ++n) scores[n] = OneLane::FloatsOf(state.scores[n / 4][thread].values[n % 4]);
      FUSELAGE_UNROLL
      for (int j = kAtOnce; j < kFragments; ++j) state.scores[j - kAtOnce][thread] = state.scores[j][thread];
      if (s.softcap != 0) {
        FUSELAGE_UNROLL
        for (float& score : scores) score = fuselage::attention::cuda::Softcapped(s, score);
      }
      const auto add = [&](auto mask) {
        FUSELAGE_UNROLL
        for (int n = 0; n < 4 * kAtOnce; ++n) {
          const int key = 8 * (first + n / 4) + 2 * (thread.lane() % 4) + n % 2, i = n % 4 / 2;
          scores[n] += key < queries.keys[i] ? mask(offsets[i] + key * s.mask_key_stride) : 0.0f;
        }
      };
      if (s.mask != nullptr) add([&](int64_t at) { return thread.Load(s.mask + at); });
      if (s.bool_mask != nullptr) add([&](int64_t at) { return thread.Load(s.bool_mask + at) != 0 ? 0.0f : kNever; });
      FUSELAGE_UNROLL
      for (int n = 0; n < 4 * kAtOnce; ++n) {
        state.scores[kFragments - kAtOnce + n / 4][thread].values[n % 4] = OneLane::BitsOf(scores[n]);
      }
    }
  }

  FUSELAGE_DEVICE static void FindLargest(Warp warp, State& state) {
    warp.ForThreads([&](Thread thread) {
      ForScores(thread, state, [&](int i, int, const int32_t* bits) {
        state.largest[i][thread] = fuselage::cuda::Max(state.largest[i][thread], OneLane::FloatsOf(*bits));
      });
    });
    // Four lanes share a query.
    FUSELAGE_UNROLL
    for (int mask = 1; mask < 4; mask *= 2) {
      FUSELAGE_UNROLL
      for (Lanes<float>& largest : state.largest) {
        const Lanes<float> others = warp.Exchange(mask, largest);
        warp.ForThreads([&](Thread thread) { largest[thread] = fuselage::cuda::Max(largest[thread], others[thread]); });
      }
    }
  }

  FUSELAGE_DEVICE static void MultiplyValues(const Params& p, Warp warp, const Part& part, uint32_t stage,
                                             State& state) {
    const int elements = p.shape.width - part.first_element;
    Lanes<uint32_t> one;
    warp.ForThreads([&](Thread thread) {
      one[thread] = Splat(1);
      const float largest[] = {state.largest[0][thread], state.largest[1][thread]};
      ForScores(thread, state, [&](int i, int, int32_t* bits) {
        const float most = largest[i] == kNever ? 0.0f : largest[i];
        *bits = AttentionWeight<OneLane>(OneLane::FloatsOf(*bits) - most);  // The code is the lowest byte.
      });
    });
    FUSELAGE_UNROLL
    for (int group = 0; group < kKeys / 32; ++group) {
      Lanes<Vector<uint32_t, 4>> weights;
      Lanes<uint32_t> offsets, v[2][2];
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const int j = 4 * group + i / 2 * 2;
          const int32_t *first = state.scores[j][thread].values + i % 2 * 2,
                        *second = state.scores[j + 1][thread].values + i % 2 * 2;
          weights[thread].values[i] =
              PickBytes(PickBytes(first[0], first[1], 0x0040), PickBytes(second[0], second[1], 0x0040), 0x5410);
        }
      });
      warp.MultiplyCodes<uint8_t>(weights, one, one, &state.totals);
      FUSELAGE_UNROLL
      for (int j = 0; j < kWidth / 16; ++j) {
        if (16 * j >= elements) continue;
        warp.ForThreads([&](Thread thread) { offsets[thread] = stage + PlaceOfValue(32 * group + thread.lane(), j); });
        fuselage::cuda::LoadColumns(warp, offsets, p.v.flip, v);
        FUSELAGE_UNROLL
        for (int i = 0; i < 2; ++i) {
          warp.MultiplyCodes<uint8_t>(weights, v[i][0], v[i][1], &state.values[j][i]);
        }
      }
    }
  }

  FUSELAGE_DEVICE static void Store(const Params& p, const Part& part, Warp warp, Thread thread, State& state) {
    const RowShape& s = p.shape;
    FUSELAGE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int row = Row(warp, thread, i);
      if (row >= part.rows) continue;
      const int32_t total = state.totals[thread].values[2 * i], zeros = total * p.v.zero_point;
      const float multiplier =
          total == 0 ? 0.0f : fuselage::cuda::Divide(p.value_multiplier, fuselage::cuda::ToFloat(total));
      const int64_t first = int64_t{RowOfAll(s, part, row)} * s.width;
      FUSELAGE_UNROLL
      for (int j = 0; j < kWidth / 16; ++j) {
        const int element = part.first_element + 16 * j + 4 * (thread.lane() % 4);
        if (element >= s.width) continue;
        Floats4 values;
        FUSELAGE_UNROLL
        for (int k = 0; k < 4; ++k) {
          const int32_t sum = state.values[j][k % 2][thread].values[2 * i + k / 2] - zeros;
          values.values[k] = fuselage::cuda::Rescale(sum, multiplier);
        }
        fuselage::cuda::StoreValues(thread, p.y, first + element, values, s.width - element);
      }
    }
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  const RowShape& s = params.shape;
  const int groups = s.group_rows == 0 ? 0 : s.rows / s.group_rows;
  fuselage::cuda::Launch<Attention>(
      {groups * params.row_blocks, (s.width + kElementsOfABlock - 1) / kElementsOfABlock, 1}, Attention::kSharedBytes,
      params, stream);
}

}  // namespace fuselage::int8::attention::cuda

#include "kernels/attention/cuda/attention_cuda.h"

#include "kernels/attention/cuda/row_score.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::attention::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::LoadFloats;
using ::fuselage::cuda::MultiplyAdd;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Warp;

constexpr float kNever = -__builtin_inff();
constexpr int kElementsOfAThread = 4;
static_assert(kElementsOfABlock == kElementsOfAThread * kWarpSize);

// A warp for each query. It goes over the keys twice, a key a thread: once for the largest score, and once for the
// weights, each of which then multiplies its value's elements, one a thread. So nothing is stored in between, whatever
// the number of keys, and sums have the order of the keys.
struct Rows {
  static constexpr int kWarps = kRowsOfABlock;
  static constexpr int kBlocks = 8;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      const RowShape& s = p.shape;
      const int64_t row = int64_t{block.x()} * kWarps + warp.index();
      if (row >= s.rows) return;
      const int first_element = block.y() * kElementsOfABlock;
      Query query = {row, row / s.group_rows, KeysOf(s, static_cast<int>(row)), MaskOffset(s, static_cast<int>(row)),
                     kNever};
      query.largest = Largest(warp, p, query);
      Lanes<float> sums[kElementsOfAThread];
      const float total = AddValues(warp, p, query, first_element, sums);
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < kElementsOfAThread; ++i) {
          const int e = first_element + thread.lane() + i * kWarpSize;
          const float sum = sums[i][thread];
          if (e < s.width)
            thread.Store(p.y + row * s.width + e, total == 0 ? 0.0f : fuselage::cuda::Divide(sum, total));
        }
      });
    });
  }

 private:
  struct Query {
    int64_t row, group;
    int keys;
    int64_t mask_offset;
    float largest;
  };

  FUSELAGE_DEVICE static float Score(Thread thread, const Params& p, const Query& query, int key) {
    const RowShape& s = p.shape;
    const float *q = p.q + query.row * s.depth, *k = p.k + (query.group * s.keys + key) * s.depth;
    float sum = 0;
    for (int d = 0; d < s.depth; d += 4) {
      const Floats4 a = LoadFloats(thread, q + d, s.depth - d), b = LoadFloats(thread, k + d, s.depth - d);
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (d + i < s.depth) sum = MultiplyAdd(a.values[i], b.values[i], sum);
      }
    }
    float score = sum * p.scale;
    if (s.softcap != 0) score = Softcapped(s, score);
    const int64_t at = query.mask_offset + key * s.mask_key_stride;
    if (s.mask != nullptr) score += thread.Load(s.mask + at);
    if (s.bool_mask != nullptr) score += thread.Load(s.bool_mask + at) != 0 ? 0.0f : kNever;
    return score;
  }

  FUSELAGE_DEVICE static float Largest(Warp warp, const Params& p, const Query& query) {
    Lanes<float> largest;
    warp.ForThreads([&](Thread thread) {
      float most = kNever;
      for (int key = thread.lane(); key < query.keys; key += kWarpSize) {
        most = fuselage::cuda::Max(most, Score(thread, p, query, key));
      }
      largest[thread] = most;
    });
    for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
      const Lanes<float> others = warp.Exchange(mask, largest);
      warp.ForThreads([&](Thread thread) { largest[thread] = fuselage::cuda::Max(largest[thread], others[thread]); });
    }
    const float most = warp.Broadcast(0, largest);
    return most == kNever ? 0.0f : most;
  }

  // The last key that one of the rows looks at which the CPU takes together.
  FUSELAGE_DEVICE static int WeighedKeys(const RowShape& s, int64_t row) {
    if (!s.is_causal) return s.keys;
    const int64_t in_group = row % s.group_rows, first = in_group / kCpuRows * kCpuRows;
    const int64_t end = first + kCpuRows < s.group_rows ? first + kCpuRows : s.group_rows;
    const bool wraps = first % s.queries + (end - first) > s.queries;
    const int64_t most = wraps ? s.queries : (end - 1) % s.queries + 1;
    return most < s.keys ? static_cast<int>(most) : s.keys;
  }

  FUSELAGE_DEVICE static float WeightOf(float distance) {
    const float e = elementwise::ExpOfNegative(distance);
    return distance < -87.0f ? 0.0f : e;
  }

  // The sums of the values' elements, by weights, whose own sum it returns.
  FUSELAGE_DEVICE static float AddValues(Warp warp, const Params& p, const Query& query, int first_element,
                                         Lanes<float> (&sums)[kElementsOfAThread]) {
    const RowShape& s = p.shape;
    Lanes<float> total;  // Sixteen sums of every sixteenth weight, in the first lanes.
    warp.ForThreads([&](Thread thread) {
      FUSELAGE_UNROLL
      for (int i = 0; i < kElementsOfAThread; ++i) sums[i][thread] = 0;
      total[thread] = 0;
    });
    const int weighed = WeighedKeys(s, query.row);
    for (int first = 0; first < weighed; first += kWarpSize) {
      Lanes<float> weights;
      warp.ForThreads([&](Thread thread) {
        const int key = first + thread.lane();
        weights[thread] = key < query.keys ? WeightOf(Score(thread, p, query, key) - query.largest) : 0.0f;
      });
      const Lanes<float> later = warp.Exchange(16, weights);
      warp.ForThreads([&](Thread thread) { total[thread] = total[thread] + weights[thread] + later[thread]; });
      const int count = weighed - first < kWarpSize ? weighed - first : kWarpSize;
      for (int k = 0; k < count; ++k) {
        const float weight = warp.Broadcast(k, weights);
        const float* value = p.v + (query.group * s.keys + first + k) * s.width + first_element;
        warp.ForThreads([&](Thread thread) {
          FUSELAGE_UNROLL
          for (int i = 0; i < kElementsOfAThread; ++i) {
            const int e = thread.lane() + i * kWarpSize;
            if (first_element + e < s.width)
              sums[i][thread] = MultiplyAdd(weight, thread.Load(value + e), sums[i][thread]);
          }
        });
      }
    }
    for (int mask = 8; mask > 0; mask /= 2) {
      const Lanes<float> others = warp.Exchange(mask, total);
      warp.ForThreads([&](Thread thread) { total[thread] += others[thread]; });
    }
    return warp.Broadcast(0, total);
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Rows>(GridOf(params.shape), /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::attention::cuda

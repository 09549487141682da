// Attention on CUDA devices, of floats or of codes: a warp for each query. It goes over the keys twice, a key a thread:
// once for the largest score, and once for the weights, each of which then multiplies its value's elements, one a
// thread. So nothing is stored in between, whatever the number of keys, and sums have the order of the keys.
#ifndef FUSELAGE_KERNELS_ATTENTION_CUDA_ROWS_H_
#define FUSELAGE_KERNELS_ATTENTION_CUDA_ROWS_H_

#include <cstdint>

#include "ir/base/elementwise_math.h"
#include "kernels/attention/cuda/row_shape.h"
#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/block.h"

namespace fuselage::attention::cuda {

constexpr int kElementsOfAThread = 4;
static_assert(kElementsOfABlock == kElementsOfAThread * fuselage::cuda::kWarpSize);

FUSELAGE_DEVICE int KeysOf(const RowShape& s, int64_t row) {
  if (!s.is_causal) return s.keys;
  const int64_t keys = row % s.group_rows % s.queries + 1;
  return keys < s.keys ? static_cast<int>(keys) : s.keys;
}

FUSELAGE_DEVICE int64_t MaskOffset(const RowShape& s, int64_t row) {
  int64_t offset = 0;
  for (int i = 0; i < s.mask_axes; ++i) {
    offset += row % s.mask_axis[i].size * s.mask_axis[i].stride;
    row /= s.mask_axis[i].size;
  }
  return offset;
}

// A product of query and key becomes a score.
FUSELAGE_DEVICE float Score(fuselage::cuda::Thread thread, const RowShape& s, float product, int64_t mask_offset,
                            int key) {
  float score = product;
  if (s.softcap != 0) score = s.softcap * elementwise::Tanh(score / s.softcap);
  const int64_t at = mask_offset + key * s.mask_key_stride;
  if (s.mask != nullptr) score += thread.Load(s.mask + at);
  if (s.bool_mask != nullptr) score += thread.Load(s.bool_mask + at) != 0 ? 0.0f : -__builtin_inff();
  return score;
}

// Arithmetic: Params with `shape`, and
//   Weight, Sum: of a key; of products of weights and elements
//   float Product(thread, p, row, group, key)
//   Weight WeightOf(float distance)        of a score, less the largest one
//   int Keys(p, row)                       as far as which keys have weights, 0 where the query does not look at them
//   AddWeights(warp, weights, &total), TotalOf(warp, total)
//   Add(thread, p, weight, index, &sum)    sum += weight * v[index]
//   Store(thread, p, index, sum, total)
template <typename Arithmetic>
struct Rows {
  static constexpr int kWarps = kRowsOfABlock;
  static constexpr int kBlocks = 8;
  using Params = typename Arithmetic::Params;
  using Weight = typename Arithmetic::Weight;

  FUSELAGE_DEVICE static void Run(fuselage::cuda::Block& block, const Params& p) {
    using fuselage::cuda::kWarpSize;
    using fuselage::cuda::Lanes;
    using fuselage::cuda::Thread;
    block.Phase([&](fuselage::cuda::Warp warp) {
      constexpr float kNever = -__builtin_inff();
      const RowShape& s = p.shape;
      const int64_t row = int64_t{block.x()} * kWarps + warp.index();
      if (row >= s.rows) return;
      const int64_t group = row / s.group_rows, mask_offset = MaskOffset(s, row);
      const int keys = KeysOf(s, row), first_element = block.y() * kElementsOfABlock;
      const auto score = [&](Thread thread, int key) {
        return Score(thread, s, Arithmetic::Product(thread, p, row, group, key), mask_offset, key);
      };

      Lanes<float> largest;
      warp.ForThreads([&](Thread thread) {
        float most = kNever;
        for (int key = thread.lane(); key < keys; key += kWarpSize) {
          const float own = score(thread, key);
          most = own > most ? own : most;
        }
        largest[thread] = most;
      });
      for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
        const Lanes<float> others = warp.Exchange(mask, largest);
        warp.ForThreads([&](Thread thread) {
          largest[thread] = others[thread] > largest[thread] ? others[thread] : largest[thread];
        });
      }

      Lanes<typename Arithmetic::Sum> sums[kElementsOfAThread];
      Lanes<Weight> total;
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < kElementsOfAThread; ++i) sums[i][thread] = 0;
        total[thread] = 0;
      });
      const int weighed = Arithmetic::Keys(p, row);
      for (int first = 0; first < weighed; first += kWarpSize) {
        Lanes<Weight> weights;
        warp.ForThreads([&](Thread thread) {
          const int key = first + thread.lane();
          const float most = largest[thread] == kNever ? 0.0f : largest[thread];
          weights[thread] = key < keys ? Arithmetic::WeightOf(score(thread, key) - most) : Weight{0};
        });
        Arithmetic::AddWeights(warp, weights, &total);
        const int count = weighed - first < kWarpSize ? weighed - first : kWarpSize;
        for (int k = 0; k < count; ++k) {
          const Weight weight = warp.Broadcast(k, weights);
          const int64_t value = (group * s.keys + first + k) * s.width + first_element;
          warp.ForThreads([&](Thread thread) {
            FUSELAGE_UNROLL
            for (int i = 0; i < kElementsOfAThread; ++i) {
              const int e = thread.lane() + i * kWarpSize;
              if (first_element + e < s.width) Arithmetic::Add(thread, p, weight, value + e, &sums[i][thread]);
            }
          });
        }
      }
      const Weight whole = Arithmetic::TotalOf(warp, total);
      warp.ForThreads([&](Thread thread) {
        FUSELAGE_UNROLL
        for (int i = 0; i < kElementsOfAThread; ++i) {
          const int e = first_element + thread.lane() + i * kWarpSize;
          if (e < s.width) Arithmetic::Store(thread, p, row * s.width + e, sums[i][thread], whole);
        }
      });
    });
  }
};

}  // namespace fuselage::attention::cuda

#endif  // FUSELAGE_KERNELS_ATTENTION_CUDA_ROWS_H_

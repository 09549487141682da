#include "kernels/norm/cuda/norm_cuda.h"

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/launch.h"
#include "kernels/dynamic_quantize/cuda/row_scale.h"

namespace fuselage::norm::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Warp;

struct Norm {
  static constexpr int kWarps = 4;
  static constexpr int kSums = 16;  // Of a row, and its threads.
  static constexpr int kRows = 2 * kWarps;
  using Params = LaunchParams;

  // What a thread works on: elements lane % kSums, ... of its row; the last row again behind the end.
  struct Share {
    int64_t first;  // Element of the row.
    int begin;
    bool stores;
  };
  FUSELAGE_DEVICE static Share ShareOf(const Block& block, Thread thread, const Params& p) {
    const int64_t row = int64_t{block.x()} * kRows + thread.index() / kSums;
    return {(row < p.rows ? row : p.rows - 1) * p.columns, thread.index() % kSums, row < p.rows};
  }

  FUSELAGE_DEVICE static float ValueAt(Thread thread, const Params& p, int64_t i) {
    if (p.codes != nullptr) {
      const int32_t code = thread.Load(p.codes + i) ^ p.x_flip;
      return fuselage::cuda::Rescale(code - p.x_zero_point, p.x_scale);
    }
    const float x = thread.Load(p.x + i);
    return p.residual == nullptr ? x : x + thread.Load(p.residual + i);
  }

  // The row's sum of term(thread, x), each with all of it.
  template <typename Term>
  FUSELAGE_DEVICE static Lanes<double> SumOf(const Block& block, Warp warp, const Params& p, Term term) {
    Lanes<double> sums;
    warp.ForThreads([&](Thread thread) {
      const Share share = ShareOf(block, thread, p);
      double sum = 0;
      for (int k = share.begin; k < p.columns; k += kSums) sum += term(thread, ValueAt(thread, p, share.first + k));
      sums[thread] = sum;
    });
    FUSELAGE_UNROLL
    for (int mask = kSums / 2; mask > 0; mask /= 2) {
      const Lanes<double> others = warp.Exchange(mask, sums);
      warp.ForThreads([&](Thread thread) { sums[thread] += others[thread]; });
    }
    return sums;
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    block.Phase([&](Warp warp) {
      const double n = p.columns;
      Lanes<double> mean, squares;
      Lanes<float> centre, factor;
      if (p.centered) mean = SumOf(block, warp, p, [](Thread, float x) { return static_cast<double>(x); });
      warp.ForThreads([&](Thread thread) { mean[thread] = p.centered ? mean[thread] / n : 0.0; });
      squares = SumOf(block, warp, p, [&](Thread thread, float x) {
        const double distance = x - mean[thread];
        return distance * distance;
      });
      warp.ForThreads([&](Thread thread) {
        centre[thread] = static_cast<float>(mean[thread]);
        factor[thread] = static_cast<float>(1 / sqrt(squares[thread] / n + p.eps));
      });
      const auto normalized = [&](Thread thread, int64_t i, float x) {
        const int64_t at = (p.inner == 1 ? i : i / p.inner) % p.parameters;
        float y = (x - centre[thread]) * factor[thread] * thread.LoadConstant(p.weight + at) +
                  thread.LoadConstant(p.bias + at);
        if (p.activated) y = elementwise::Activated(p.function, y);
        const float least = y < p.min ? p.min : y;
        return least > p.max ? p.max : least;
      };
      Lanes<dynamic_quantize::cuda::Range> ranges;
      if (p.y_scales != nullptr) {
        warp.ForThreads([&](Thread thread) {
          const Share share = ShareOf(block, thread, p);
          dynamic_quantize::cuda::Range range;
          for (int k = share.begin; k < p.columns; k += kSums) {
            const int64_t i = share.first + k;
            dynamic_quantize::cuda::Widen(normalized(thread, i, ValueAt(thread, p, i)), &range);
          }
          ranges[thread] = range;
        });
        dynamic_quantize::cuda::Join(warp, kSums, &ranges);
      }
      warp.ForThreads([&](Thread thread) {
        const Share share = ShareOf(block, thread, p);
        if (!share.stores) return;
        const float scale = p.y_scales == nullptr ? p.y_scale : dynamic_quantize::cuda::SymmetricScale(ranges[thread]);
        if (p.y_scales != nullptr && share.begin == 0) thread.Store(p.y_scales + share.first / p.columns, scale);
        for (int k = share.begin; k < p.columns; k += kSums) {
          const int64_t i = share.first + k;
          const float x = ValueAt(thread, p, i), y = normalized(thread, i, x);
          if (p.sum != nullptr) thread.Store(p.sum + i, x);
          if (p.y != nullptr) {
            thread.Store(p.y + i, y);
          } else if (p.y_scales != nullptr) {
            thread.Store(p.y_codes + i, dynamic_quantize::cuda::SymmetricCode(y, scale));
          } else {
            const int32_t code = fuselage::cuda::QuantizeValue(y, scale, {p.y_zero_point, p.y_lo, p.y_hi});
            thread.Store(p.y_codes + i, static_cast<uint8_t>(code ^ p.y_flip));
          }
        }
      });
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Norm>({(params.rows + Norm::kRows - 1) / Norm::kRows, 1, 1}, /*shared_bytes=*/0, params,
                               stream);
}

}  // namespace fuselage::norm::cuda

#include "kernels/attention/cuda/attention_cuda.h"

#include "kernels/attention/cuda/rows.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::attention::cuda {
namespace {

using ::fuselage::cuda::Floats4;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::LoadFloats;
using ::fuselage::cuda::MultiplyAdd;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Warp;

struct Floats {
  using Params = LaunchParams;
  using Weight = float;
  using Sum = float;

  FUSELAGE_DEVICE static float Product(Thread thread, const Params& p, int64_t row, int64_t group, int key) {
    const float *q = p.q + row * p.shape.depth, *k = p.k + (group * p.shape.keys + key) * p.shape.depth;
    float sum = 0;
    for (int d = 0; d < p.shape.depth; d += 4) {
      const Floats4 a = LoadFloats(thread, q + d, p.shape.depth - d), b = LoadFloats(thread, k + d, p.shape.depth - d);
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (d + i < p.shape.depth) sum = MultiplyAdd(a.values[i], b.values[i], sum);
      }
    }
    return sum * p.scale;
  }

  FUSELAGE_DEVICE static float WeightOf(float distance) {
    const float e = elementwise::ExpOfNegative(distance);
    return distance < -87.0f ? 0.0f : e;
  }

  // The last key that one of the rows looks at which the CPU takes together.
  FUSELAGE_DEVICE static int Keys(const Params& p, int64_t row) {
    if (!p.shape.is_causal) return p.shape.keys;
    const int64_t in_group = row % p.shape.group_rows, first = in_group / kCpuRows * kCpuRows;
    const int64_t end = first + kCpuRows < p.shape.group_rows ? first + kCpuRows : p.shape.group_rows;
    const bool wraps = first % p.shape.queries + (end - first) > p.shape.queries;
    const int64_t most = wraps ? p.shape.queries : (end - 1) % p.shape.queries + 1;
    return most < p.shape.keys ? static_cast<int>(most) : p.shape.keys;
  }

  // Sixteen sums of every sixteenth weight, in the first lanes.
  FUSELAGE_DEVICE static void AddWeights(Warp warp, const Lanes<float>& weights, Lanes<float>* total) {
    const Lanes<float> later = warp.Exchange(16, weights);
    warp.ForThreads([&](Thread thread) { (*total)[thread] = (*total)[thread] + weights[thread] + later[thread]; });
  }
  FUSELAGE_DEVICE static float TotalOf(Warp warp, Lanes<float> total) {
    for (int mask = 8; mask > 0; mask /= 2) {
      const Lanes<float> others = warp.Exchange(mask, total);
      warp.ForThreads([&](Thread thread) { total[thread] += others[thread]; });
    }
    return warp.Broadcast(0, total);
  }

  FUSELAGE_DEVICE static void Add(Thread thread, const Params& p, float weight, int64_t index, float* sum) {
    *sum = MultiplyAdd(weight, thread.Load(p.v + index), *sum);
  }
  FUSELAGE_DEVICE static void Store(Thread thread, const Params& p, int64_t index, float sum, float total) {
    thread.Store(p.y + index, total == 0 ? 0.0f : fuselage::cuda::Divide(sum, total));
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Rows<Floats>>(GridOf(params.shape), /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::attention::cuda

#include "kernels/int8/attention/cuda/attention_cuda.h"

#include "ir/base/attention_weight.h"
#include "kernels/attention/cuda/rows.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::attention::cuda {
namespace {

using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::kWarpSize;
using ::fuselage::cuda::Lanes;
using ::fuselage::cuda::LoadCodes;
using ::fuselage::cuda::MultiplyBytes;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Warp;

struct Codes {
  using Params = LaunchParams;
  using Weight = int32_t;
  using Sum = int32_t;

  FUSELAGE_DEVICE static float Product(Thread thread, const Params& p, int64_t row, int64_t group, int key) {
    const int depth = p.shape.depth;
    const uint8_t *q = p.q.codes + row * depth, *k = p.k.codes + (group * p.shape.keys + key) * depth;
    int32_t products = 0, q_sum = 0, k_sum = 0;
    for (int d = 0; d < depth; d += 16) {
      const Codes16 a = LoadCodes(thread, q + d, depth - d), b = LoadCodes(thread, k + d, depth - d);
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int count = depth - d - 4 * i;
        const uint32_t there = count >= 4 ? ~0u : count <= 0 ? 0u : (1u << 8 * count) - 1;
        const uint32_t x = (a.values[i] ^ Splat(p.q.flip)) & there, y = (b.values[i] ^ Splat(p.k.flip)) & there;
        products = MultiplyBytes(x, y, products);
        q_sum = MultiplyBytes(x, Splat(1), q_sum);
        k_sum = MultiplyBytes(y, Splat(1), k_sum);
      }
    }
    // Modulo 2^32, in which the sum is proven to fit.
    const auto zq = static_cast<uint32_t>(p.q.zero_point), zk = static_cast<uint32_t>(p.k.zero_point);
    const uint32_t sum = static_cast<uint32_t>(products) - zk * static_cast<uint32_t>(q_sum) -
                         zq * static_cast<uint32_t>(k_sum) + static_cast<uint32_t>(depth) * zq * zk;
    return fuselage::cuda::Rescale(static_cast<int32_t>(sum), p.score_multiplier);
  }

  FUSELAGE_DEVICE static int32_t WeightOf(float distance) {
    return AttentionWeight<OneLane>(distance) - kRoundingBits;
  }

  FUSELAGE_DEVICE static int Keys(const Params& p, int64_t row) {
    return fuselage::attention::cuda::KeysOf(p.shape, row);
  }

  FUSELAGE_DEVICE static void AddWeights(Warp warp, const Lanes<int32_t>& weights, Lanes<int32_t>* total) {
    warp.ForThreads([&](Thread thread) { (*total)[thread] += weights[thread]; });
  }
  FUSELAGE_DEVICE static int32_t TotalOf(Warp warp, Lanes<int32_t> total) {
    for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
      const Lanes<int32_t> others = warp.Exchange(mask, total);
      warp.ForThreads([&](Thread thread) { total[thread] += others[thread]; });
    }
    return warp.Broadcast(0, total);
  }

  FUSELAGE_DEVICE static void Add(Thread thread, const Params& p, int32_t weight, int64_t index, int32_t* sum) {
    const auto code = static_cast<int8_t>(thread.Load(p.v.codes + index) ^ p.v.flip);
    *sum += weight * (code - p.v.zero_point);
  }
  FUSELAGE_DEVICE static void Store(Thread thread, const Params& p, int64_t index, int32_t sum, int32_t total) {
    const float multiplier =
        total == 0 ? 0.0f : fuselage::cuda::Divide(p.value_multiplier, fuselage::cuda::ToFloat(total));
    const float v = fuselage::cuda::Rescale(sum, multiplier);
    if (p.float_output) {
      thread.Store(static_cast<float*>(p.y) + index, v);
    } else {
      const int32_t code = fuselage::cuda::ToCode(v, {p.zero_point, 0, 255}) ^ p.flip;
      thread.Store(static_cast<uint8_t*>(p.y) + index, static_cast<uint8_t>(code));
    }
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<fuselage::attention::cuda::Rows<Codes>>(fuselage::attention::cuda::GridOf(params.shape),
                                                                 /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::int8::attention::cuda

#include "kernels/fused_elementwise/cuda/fused_elementwise_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operand.h"

namespace fuselage::fused_elementwise::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeAt;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadOperand;
using ::fuselage::cuda::OffsetOf;
using ::fuselage::cuda::Operand;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::Thread;

template <int kOperands>
struct Lookup {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const uint32_t first = 16 * item;
      const int count = static_cast<int>(p.codes - first < 16 ? p.codes - first : 16);
      const Codes16 a = LoadOperand(thread, p.operands[0], first, count);
      Codes16 b = {};
      if constexpr (kOperands == 2) b = LoadOperand(thread, p.operands[1], first, count);
      Codes16 y = {};
      FUSELAGE_UNROLL
      for (int i = 0; i < 16; ++i) {
        int32_t at = CodeOf(a.values[i / 4], i % 4);
        if constexpr (kOperands == 2) at = 256 * at + CodeOf(b.values[i / 4], i % 4);
        y.values[i / 4] |= CodeAt(thread.LoadConstant(p.table + at), i % 4);
      }
      StoreCodes(thread, p.y + first, y, count);
    });
  }
};

// A thread's values, operands and then steps, are a column of shared memory.
struct Steps {
  static constexpr int kWarps = kItemWarps;
  static constexpr int kRowBytes = 4 * kWarps * fuselage::cuda::kWarpSize;
  using Params = StepParams;

  FUSELAGE_DEVICE static float LoadValue(Thread thread, const Params& p, int operand, uint32_t item) {
    const Operand& from = p.operands[operand];
    const int64_t at = from.whole ? int64_t{item} : OffsetOf(from, item);
    if (!p.codes) return thread.Load(reinterpret_cast<const float*>(from.x) + at);
    const Params::Encoding& encoding = p.encodings[operand];
    return fuselage::cuda::Rescale((thread.Load(from.x + at) ^ encoding.flip) - encoding.zero_point, encoding.scale);
  }

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const auto place = [&](int value) { return static_cast<uint32_t>(value * kRowBytes + 4 * thread.index()); };
      for (int i = 0; i < p.num_operands; ++i) thread.StoreShared(place(i), LoadValue(thread, p, i, item));
      float y = 0;
      for (int i = 0; i < p.num_steps; ++i) {
        const ElementwiseInstruction& step = p.steps[i];
        Step(step, thread.LoadShared<float>(place(step.a)), thread.LoadShared<float>(place(step.b)), &y);
        thread.StoreShared(place(p.num_operands + i), y);
      }
      if (p.codes) {
        const int32_t code = fuselage::cuda::QuantizeValue(y, p.result.scale, {p.result.zero_point, 0, 255});
        thread.Store(static_cast<uint8_t*>(p.y) + item, static_cast<uint8_t>(code ^ p.result.flip));
      } else {
        thread.Store(static_cast<float*>(p.y) + item, y);
      }
    });
  }
};

}  // namespace

void Launch(const StepParams& params, void* stream) {
  fuselage::cuda::Launch<Steps>({params.items.blocks, 1, 1},
                                (params.num_operands + params.num_steps) * Steps::kRowBytes, params, stream);
}

void Launch(const LaunchParams& params, void* stream) {
  const std::array<int, 3> grid = {params.items.blocks, 1, 1};
  if (params.num_operands == 1) {
    fuselage::cuda::Launch<Lookup<1>>(grid, /*shared_bytes=*/0, params, stream);
  } else {
    fuselage::cuda::Launch<Lookup<2>>(grid, /*shared_bytes=*/0, params, stream);
  }
}

}  // namespace fuselage::fused_elementwise::cuda

#include "kernels/fused_elementwise/cuda/fused_elementwise_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::fused_elementwise::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeAt;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadCodes;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::Thread;

FUSELAGE_DEVICE int64_t OffsetOf(const LaunchParams::Operand& operand, uint32_t code) {
  int64_t offset = 0;
  for (int i = 0; i < operand.axes; ++i) {
    offset += code % operand.axis[i].size * operand.axis[i].stride;
    code /= operand.axis[i].size;
  }
  return offset;
}

FUSELAGE_DEVICE Codes16 LoadOperand(Thread thread, const LaunchParams::Operand& operand, uint32_t first, int count) {
  if (operand.whole) return LoadCodes(thread, operand.x + first, count);
  Codes16 codes = {};
  if (operand.rows) {
    const uint8_t* x = operand.x + OffsetOf(operand, first);
    if (operand.axis[0].stride == 1) return LoadCodes(thread, x, count);
    if (operand.axis[0].stride == 0) {
      const uint32_t word = Splat(thread.Load(x));
      return {{word, word, word, word}};
    }
  }
  FUSELAGE_UNROLL
  for (int i = 0; i < 16; ++i) {
    if (i < count) codes.values[i / 4] |= CodeAt(thread.Load(operand.x + OffsetOf(operand, first + i)), i % 4);
  }
  return codes;
}

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
        y.values[i / 4] |= CodeAt(thread.Load(p.table + at), i % 4);
      }
      StoreCodes(thread, p.y + first, y, count);
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  const std::array<int, 3> grid = {params.items.blocks, 1, 1};
  if (params.num_operands == 1) {
    fuselage::cuda::Launch<Lookup<1>>(grid, /*shared_bytes=*/0, params, stream);
  } else {
    fuselage::cuda::Launch<Lookup<2>>(grid, /*shared_bytes=*/0, params, stream);
  }
}

}  // namespace fuselage::fused_elementwise::cuda

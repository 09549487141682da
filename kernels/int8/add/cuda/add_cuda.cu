#include "kernels/int8/add/cuda/add_cuda.h"

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/operand.h"

namespace fuselage::int8::add::cuda {
namespace {

using ::fuselage::cuda::AddResidual;
using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeAt;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadCodes;
using ::fuselage::cuda::LoadOperand;
using ::fuselage::cuda::Operand;
using ::fuselage::cuda::Rescale;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::ToCode;

FUSELAGE_DEVICE uint32_t AddWords(const add::Params& p, uint32_t a, uint32_t b) {
  a ^= Splat(p.flip_a);
  b ^= Splat(p.flip_b);
  uint32_t y = 0;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float v = AddResidual(Rescale(CodeOf(a, i) - p.zero_point_a, p.multiplier_a), CodeOf(b, i) - p.zero_point_b,
                                p.multiplier_b);
    y |= CodeAt(ToCode(v, {p.zero_point_y, p.lo, p.hi}), i);
  }
  return y ^ Splat(p.flip_y);
}

// Where both operands are whole it is short, and has the registers for as many threads as a multiprocessor holds.
template <bool kBroadcasts>
struct Add {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const int64_t first = int64_t{16} * item;
      const int count = static_cast<int>(p.codes - first < 16 ? p.codes - first : 16);
      const auto load = [&](const Operand& operand) {
        return kBroadcasts ? LoadOperand(thread, operand, static_cast<uint32_t>(first), count)
                           : LoadCodes(thread, operand.x + first, count);
      };
      Codes16 codes = load(p.a);
      const Codes16 other = load(p.b);
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) codes.values[i] = AddWords(p.add, codes.values[i], other.values[i]);
      StoreCodes(thread, p.y + first, codes, count);
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  const bool broadcasts = !params.a.whole || !params.b.whole;
  const auto launch = broadcasts ? fuselage::cuda::Launch<Add<true>> : fuselage::cuda::Launch<Add<false>>;
  launch({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream, /*clusters=*/false);
}

}  // namespace fuselage::int8::add::cuda

#include "kernels/int8/relu/cuda/relu_cuda.h"

#include "kernels/cuda/arithmetic.h"
#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::relu::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeAt;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::Codes16;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadCodes;
using ::fuselage::cuda::MaxOfBytes;
using ::fuselage::cuda::Rescale;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::StoreCodes;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::ToCode;

FUSELAGE_DEVICE uint32_t MapWord(const relu::Params& p, uint32_t x) {
  x ^= Splat(p.flip_x);
  if (p.same) return MaxOfBytes(x, Splat(static_cast<uint8_t>(p.zero_point_x))) ^ Splat(p.flip_y);
  uint32_t y = 0;
  FUSELAGE_UNROLL
  for (int i = 0; i < 4; ++i) {
    y |= CodeAt(ToCode(Rescale(CodeOf(x, i) - p.zero_point_x, p.multiplier), {p.zero_point_y, p.lo, p.hi}), i);
  }
  return y ^ Splat(p.flip_y);
}

struct Relu {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const int64_t first = int64_t{16} * item;
      const int count = static_cast<int>(p.codes - first < 16 ? p.codes - first : 16);
      Codes16 codes = LoadCodes(thread, p.x + first, count);
      FUSELAGE_UNROLL
      for (uint32_t& word : codes.values) word = MapWord(p.relu, word);
      StoreCodes(thread, p.y + first, codes, count);
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Relu>({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::int8::relu::cuda

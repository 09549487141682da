#include "kernels/int8/matmul/cuda/matmul_cuda.h"

#include "kernels/cuda/codes.h"
#include "kernels/cuda/launch.h"

namespace fuselage::int8::matmul::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::CodeOf;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::LoadWord;
using ::fuselage::cuda::Splat;
using ::fuselage::cuda::Thread;

struct Matmul {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const uint32_t column = 4 * (item % p.fours), row_of_all = item / p.fours;
      const uint32_t product = row_of_all / p.rows, row = row_of_all % p.rows;
      const int count = static_cast<int>(p.columns - column < 4 ? p.columns - column : 4);
      const uint8_t* a = p.a.codes + (thread.LoadConstant(p.a.matrices + product) * p.rows + row) * p.depth;
      const uint8_t* b = p.b.codes + thread.LoadConstant(p.b.matrices + product) * p.depth * p.columns + column;
      int32_t sums[4] = {};
      for (const uint8_t* end = a + p.depth; a != end; ++a, b += p.columns) {
        const int32_t x = (thread.Load(a) ^ p.a.flip) - p.a.zero_point;
        const uint32_t word = LoadWord(thread, b, count) ^ Splat(p.b.flip);
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) sums[i] += x * (CodeOf(word, i) - p.b.zero_point);
      }
      const int64_t at = int64_t{row_of_all} * p.columns + column;
      FUSELAGE_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (i >= count) continue;
        if (p.float_output) {
          thread.Store(static_cast<float*>(p.y) + at + i, fuselage::cuda::Rescale(sums[i], p.multiplier));
        } else {
          const int32_t code =
              fuselage::cuda::ToCode(fuselage::cuda::Rescale(sums[i], p.multiplier), {p.zero_point, 0, 255});
          thread.Store(static_cast<uint8_t*>(p.y) + at + i, static_cast<uint8_t>(code ^ p.flip));
        }
      }
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  fuselage::cuda::Launch<Matmul>({params.items.blocks, 1, 1}, /*shared_bytes=*/0, params, stream);
}

}  // namespace fuselage::int8::matmul::cuda

#include "kernels/cuda/launch.h"
#include "kernels/movement/cuda/movement_cuda.h"

namespace fuselage::movement::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;

template <typename Word>
struct Copy {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      int64_t from = 0, to = 0;
      for (int i = 0; i < p.axes; ++i) {
        const int64_t position = item % p.axis[i].size;
        item /= p.axis[i].size;
        from += position * p.axis[i].from;
        to += position * p.axis[i].to;
      }
      thread.Store(reinterpret_cast<Word*>(p.to) + to, thread.Load(reinterpret_cast<const Word*>(p.from) + from));
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  const std::array<int, 3> grid = {params.items.blocks, 1, 1};
  switch (params.word_bytes) {
    case 1: return fuselage::cuda::Launch<Copy<uint8_t>>(grid, /*shared_bytes=*/0, params, stream);
    case 2: return fuselage::cuda::Launch<Copy<uint16_t>>(grid, /*shared_bytes=*/0, params, stream);
    case 4: return fuselage::cuda::Launch<Copy<uint32_t>>(grid, /*shared_bytes=*/0, params, stream);
    case 8: return fuselage::cuda::Launch<Copy<Vector<uint32_t, 2>>>(grid, /*shared_bytes=*/0, params, stream);
    default: return fuselage::cuda::Launch<Copy<Vector<uint32_t, 4>>>(grid, /*shared_bytes=*/0, params, stream);
  }
}

}  // namespace fuselage::movement::cuda

#include "kernels/indexing/cuda/indexing_cuda.h"

#include <cstring>

#include "kernels/cuda/launch.h"

namespace fuselage::indexing::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;

template <typename Word>
struct Select {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;
  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const uint32_t row = item / p.row_words, i = row % p.count;
      int64_t position = p.wide ? thread.Load(static_cast<const int64_t*>(p.positions) + i)
                                : int64_t{thread.Load(static_cast<const int32_t*>(p.positions) + i)};
      if (position < 0) position += p.dim;
      Word word;
      memset(&word, 0xff, sizeof(word));
      if (position >= 0 && position < p.dim) {
        const int64_t from = (row / p.count * p.dim + position) * p.row_words + item % p.row_words;
        word = thread.Load(static_cast<const Word*>(p.x) + from);
      }
      thread.Store(static_cast<Word*>(p.y) + item, word);
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  const std::array<int, 3> grid = {params.items.blocks, 1, 1};
  switch (params.word_bytes) {
    case 1: return fuselage::cuda::Launch<Select<uint8_t>>(grid, /*shared_bytes=*/0, params, stream);
    case 2: return fuselage::cuda::Launch<Select<uint16_t>>(grid, /*shared_bytes=*/0, params, stream);
    case 4: return fuselage::cuda::Launch<Select<uint32_t>>(grid, /*shared_bytes=*/0, params, stream);
    case 8: return fuselage::cuda::Launch<Select<Vector<uint32_t, 2>>>(grid, /*shared_bytes=*/0, params, stream);
    default: return fuselage::cuda::Launch<Select<Vector<uint32_t, 4>>>(grid, /*shared_bytes=*/0, params, stream);
  }
}

}  // namespace fuselage::indexing::cuda

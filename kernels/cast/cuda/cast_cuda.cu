#include "kernels/cast/cuda/cast_cuda.h"

#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"
#if !defined(__CUDACC__)
#include "ir/base/dtype.h"
#endif

namespace fuselage::cast::cuda {
namespace {

using ::fuselage::cuda::Block;
using ::fuselage::cuda::ForEach;
using ::fuselage::cuda::kItemWarps;
using ::fuselage::cuda::Thread;
using ::fuselage::cuda::Vector;

#if defined(__CUDACC__)
FUSELAGE_DEVICE void Convert(float x, uint16_t* y) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(*y) : "f"(x)); }
FUSELAGE_DEVICE void Convert(uint16_t x, float* y) { asm("cvt.f32.f16 %0, %1;" : "=f"(*y) : "h"(x)); }
#else
void Convert(float x, uint16_t* y) { *y = ToHalf(x).bits; }
void Convert(uint16_t x, float* y) { *y = ToFloat(Half{x}); }
#endif

template <typename From, typename To>
struct Cast {
  static constexpr int kWarps = kItemWarps;
  using Params = LaunchParams;

  FUSELAGE_DEVICE static void Run(Block& block, const Params& p) {
    ForEach(block, p.items, [&](Thread thread, uint32_t item) {
      const int64_t first = int64_t{4} * item;
      const From* x = static_cast<const From*>(p.x) + first;
      To* y = static_cast<To*>(p.y) + first;
      if (first + 4 <= p.elements) {
        const auto from = thread.Load(reinterpret_cast<const Vector<From, 4>*>(x));
        Vector<To, 4> to;
        FUSELAGE_UNROLL
        for (int i = 0; i < 4; ++i) Convert(from.values[i], &to.values[i]);
        thread.Store(reinterpret_cast<Vector<To, 4>*>(y), to);
        return;
      }
      for (int i = 0; first + i < p.elements; ++i) {
        To to;
        Convert(thread.Load(x + i), &to);
        thread.Store(y + i, to);
      }
    });
  }
};

}  // namespace

void Launch(const LaunchParams& params, void* stream) {
  const std::array<int, 3> grid = {params.items.blocks, 1, 1};
  if (params.to_half) {
    fuselage::cuda::Launch<Cast<float, uint16_t>>(grid, /*shared_bytes=*/0, params, stream);
  } else {
    fuselage::cuda::Launch<Cast<uint16_t, float>>(grid, /*shared_bytes=*/0, params, stream);
  }
}

}  // namespace fuselage::cast::cuda

#include "kernels/reproducible/primitives.h"

#include "kernels/reproducible/loops.h"

namespace fuselage::reproducible {
namespace {

using kernels::Isa;

constexpr Primitives kTable[] = {
    {"scalar", Isa::kScalar, kScalarRows, kScalarColumns, scalar::Tile, scalar::Depthwise, scalar::Exponentials},
    {"avx2", Isa::kAvx2, kAvx2Rows, kAvx2Columns, avx2::Tile, avx2::Depthwise, avx2::Exponentials},
    {"avx512_vnni", Isa::kAvx512Vnni, kAvx512Rows, kAvx512Columns, avx512_vnni::Tile, avx512_vnni::Depthwise,
     avx512_vnni::Exponentials},
};

}  // namespace

absl::Span<const Primitives> AllPrimitives() { return kTable; }

// The definition. __builtin_fmaf is the C library's here, exact with and without hardware for it.
void scalar::Tile(const float* a, const float* b, int64_t depth, float* sums, int64_t stride) {
  for (int64_t i = 0; i < kScalarRows; ++i) {
    for (int64_t j = 0; j < kScalarColumns; ++j) {
      float sum = sums[i * stride + j];
      for (int64_t k = 0; k < depth; ++k) {
        sum = __builtin_fmaf(a[i * kRowStride + k], b[k * kScalarColumns + j], sum);
      }
      sums[i * stride + j] = sum;
    }
  }
}

void scalar::Depthwise(const float* const* x, const float* w, int64_t taps, int64_t channels, float* sums) {
  DepthwiseLoop(x, w, taps, channels, sums);
}

void scalar::Exponentials(const float* x, float largest, int64_t n, float* y) { ExponentialsLoop(x, largest, n, y); }

}  // namespace fuselage::reproducible

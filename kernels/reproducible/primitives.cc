#include "kernels/reproducible/primitives.h"

#include "kernels/reproducible/loops.h"

namespace fuselage::reproducible {
namespace {

using kernels::Isa;

constexpr Primitives kTable[] = {
    {"scalar", Isa::kScalar, kScalarRows, kScalarColumns, scalar::Tile, scalar::Depthwise, scalar::Exponentials,
     scalar::Activate},
    {"avx2", Isa::kAvx2, kAvx2Rows, kAvx2Columns, avx2::Tile, avx2::Depthwise, avx2::Exponentials,
     kernels::avx2::Activate},
    {"avx512_vnni", Isa::kAvx512Vnni, kAvx512Rows, kAvx512Columns, avx512_vnni::Tile, avx512_vnni::Depthwise,
     avx512_vnni::Exponentials, kernels::avx512_vnni::Activate},
};

}  // namespace

absl::Span<const Primitives> AllPrimitives() { return kTable; }

void Activate(const Primitives& primitives, const Activation& activation, float* values, int64_t n) {
  if (activation.function) {
    const int64_t whole = n & -kernels::kActivatedTogether;
    primitives.activate(*activation.function, values, whole);
    scalar::Activate(*activation.function, values + whole, n - whole);
  }
  const Activation bounds = activation.bounds();
  if (bounds.is_none()) return;
  for (int64_t i = 0; i < n; ++i) values[i] = bounds(values[i]);
}

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

void scalar::Activate(const ElementwiseInstruction& function, float* values, int64_t size) {
  for (int64_t i = 0; i < size; ++i) values[i] = elementwise::Activated(function, values[i]);
}

void scalar::Exponentials(const float* x, float largest, int64_t n, float* y) { ExponentialsLoop(x, largest, n, y); }

}  // namespace fuselage::reproducible

// The inner loops, of which each instruction set has its own: all with the bits of the scalar ones.
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_PRIMITIVES_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_PRIMITIVES_H_

#include <cstdint>

#include "absl/types/span.h"
#include "ir/base/activation.h"
#include "kernels/core/activate.h"
#include "kernels/core/variant.h"

namespace fuselage::reproducible {

// Rows of a tile's left factor lie kRowStride floats apart, which is not a multiple of a page: rows do not compete for
// one set of the cache. A block of products is at most kDepth deep.
constexpr int64_t kDepth = 256;
constexpr int64_t kRowStride = kDepth + 16;

// sums[i][j] = fma(a[i][k], b[k][j], sums[i][j]) for k = 0, 1, ..., depth - 1, for all rows and columns of the tile.
// a[i] lies at a + i * kRowStride, b[k] at b + k * columns, sums[i] at sums + i * stride.
using TileFunction = void(const float* a, const float* b, int64_t depth, float* sums, int64_t stride);
// sums[c] = fma(x[t][c], w[t * channels + c], sums[c]) for t = 0, 1, ..., taps - 1, for all channels.
using DepthwiseFunction = void(const float* const* x, const float* w, int64_t taps, int64_t channels, float* sums);
// y[i] = e^(x[i] - largest), 0 below e^-87. No x[i] is above `largest`.
using ExponentialsFunction = void(const float* x, float largest, int64_t n, float* y);

struct Primitives {
  const char* name;
  kernels::Isa isa;
  int64_t rows, columns;  // A tile's.
  TileFunction* tile;
  DepthwiseFunction* depthwise;
  ExponentialsFunction* exponentials;
  kernels::ActivateFunction* activate;
};

absl::Span<const Primitives> AllPrimitives();

// values[i] = activation(values[i])
void Activate(const Primitives& primitives, const Activation& activation, float* values, int64_t n);

constexpr int64_t kScalarRows = 4, kScalarColumns = 4;
constexpr int64_t kAvx2Rows = 6, kAvx2Columns = 16;
constexpr int64_t kAvx512Rows = 14, kAvx512Columns = 32;

FUSELAGE_VARIANTS(TileFunction, Tile)
FUSELAGE_VARIANTS(DepthwiseFunction, Depthwise)
FUSELAGE_VARIANTS(ExponentialsFunction, Exponentials)
namespace scalar {
kernels::ActivateFunction Activate;
}

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_PRIMITIVES_H_

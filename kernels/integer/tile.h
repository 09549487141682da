// The innermost product: rows of 16-bit pairs times a panel of columns.
#ifndef FUSELAGE_KERNELS_INTEGER_TILE_H_
#define FUSELAGE_KERNELS_INTEGER_TILE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/variant.h"

namespace fuselage::integer {

constexpr int kPanel = 32;  // Columns.

// c[r][n] = sum over k of a[r][k] * b[k / 2][n][k % 2], modulo 2^32.
struct Tile {
  const int16_t* a = nullptr;  // [rows][2 * pairs]
  const int16_t* b = nullptr;  // [pairs][kPanel][2]
  int32_t* c = nullptr;        // Rows lie c_stride elements apart.
  int64_t pairs = 0, c_stride = 0;
  int64_t rows = 0;
  int columns = kPanel;  // The first ones are stored.
};

using Function = void(const Tile& tile);
using Variant = kernels::Variant<Tile, Function>;

absl::Span<const Variant> Variants();

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::integer

#endif  // FUSELAGE_KERNELS_INTEGER_TILE_H_

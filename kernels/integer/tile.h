// The innermost product: rows times a panel of columns, by steps of 4 bytes of depth. A step has two i16, codes less
// their zero points; or four bytes, a's codes as u8 and b's as i8 (product.h).
#ifndef FUSELAGE_KERNELS_INTEGER_TILE_H_
#define FUSELAGE_KERNELS_INTEGER_TILE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/core/variant.h"

namespace fuselage::integer {

constexpr int kPanel = 32;  // Columns.
constexpr int kStepBytes = 4;

// c[r][n] = addend[n] + row_factors[r] * column_factors[n] + sum over k of a[r][k] * b[n][k], modulo 2^32.
struct Tile {
  const void* a = nullptr;          // [rows][steps]
  const void* b = nullptr;          // [steps][kPanel]
  const int32_t* addend = nullptr;  // [kPanel]
  // Of bytes: [rows] and [kPanel]; null: zeros.
  const int32_t *row_factors = nullptr, *column_factors = nullptr;
  int32_t* c = nullptr;  // Rows lie c_stride elements apart.
  int64_t steps = 0, c_stride = 0;
  int64_t rows = 0;
  int columns = kPanel;  // The first ones are stored.
};

using Function = void(const Tile& tile);

struct Variant {
  const char* name;
  kernels::Isa isa;
  bool bytes;  // What a step has.
  Function* run;
};

absl::Span<const Variant> Variants();

FUSELAGE_VARIANTS(Function, Run)

}  // namespace fuselage::integer

#endif  // FUSELAGE_KERNELS_INTEGER_TILE_H_

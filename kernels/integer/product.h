// A product of packed matrices, spread over threads.
#ifndef FUSELAGE_KERNELS_INTEGER_PRODUCT_H_
#define FUSELAGE_KERNELS_INTEGER_PRODUCT_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "kernels/core/kernel.h"
#include "kernels/integer/tile.h"

namespace fuselage::integer {

// groups products [rows, depth] x [depth, columns] beside each other: of `a` each group has its own columns, of the
// result too.
struct Product {
  int64_t rows = 0, depth = 0, columns = 0, groups = 1;

  int64_t pairs() const { return (depth + 1) / 2; }
  int64_t panels() const { return (columns + kPanel - 1) / kPanel; }
  int64_t packed_elements() const { return groups * panels() * pairs() * 2 * kPanel; }  // The elements of b.
  int64_t scratch_bytes(int threads) const;                                             // For rows of a.
};

// Panel `panel` of all groups' panels, by its columns of depth `depth`; zeros fill it up.
using Element = absl::FunctionRef<int16_t(int64_t group, int64_t k, int64_t column)>;
void PackPanel(const Product& product, int64_t panel, Element element, int16_t* packed);

// `pack_rows(row, n, group, to)` packs rows [row, row + n) of a: [n][2 * pairs], a last odd element of 0.
using PackRows = absl::FunctionRef<void(int64_t row, int64_t n, int64_t group, int16_t* to)>;
void Multiply(const Product& product, const int16_t* packed_b, PackRows pack_rows, Function* run, int32_t* c,
              void* scratch, kernels::Parallel& parallel);

// Element `i` of operand `operand`, a zero point of u8 or i8; 0 where it is absent.
int32_t ZeroPoint(const kernels::Kernel& kernel, size_t operand, absl::Span<const kernels::ConstBuffer> inputs,
                  int64_t i = 0);

// The values of a constant zero point, which packed codes depend on; "" where it is absent.
std::string TextOf(const Tensor* zero_point);

}  // namespace fuselage::integer

#endif  // FUSELAGE_KERNELS_INTEGER_PRODUCT_H_

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
  bool bytes = false;  // What a step of depth has (tile.h).

  int64_t per_step() const { return bytes ? 4 : 2; }
  int64_t steps() const { return (depth + per_step() - 1) / per_step(); }
  int64_t panels() const { return (columns + kPanel - 1) / kPanel; }
  // Behind a panel of bytes there are its columns' shifts, and their sums.
  int64_t panel_bytes() const { return (steps() + (bytes ? 2 : 0)) * kPanel * kStepBytes; }
  TensorType packed_type() const;            // Of b.
  int64_t scratch_bytes(int threads) const;  // For rows of a.
};

// Panel `panel` of all groups' panels, by its columns of depth `depth`; zeros fill it up. An element is a code less its
// zero point; where some of a column are no i8, all of it are shifted by as little as makes them such.
using Element = absl::FunctionRef<int16_t(int64_t group, int64_t k, int64_t column)>;
void PackPanel(const Product& product, int64_t panel, Element element, void* packed);

// How a is packed: each code less `less`, which makes its zero point `zero`.
struct Left {
  int32_t less, zero;
};
Left LeftOf(const Product& product, DType dtype, int32_t zero_point);

// Calls body(Code(), Packed()) with the types of a's codes and of what they are packed as.
template <typename F>
void WithTypes(const Product& product, DType dtype, F body) {
  if (dtype == DType::kU8) {
    product.bytes ? body(uint8_t{}, uint8_t{}) : body(uint8_t{}, int16_t{});
  } else {
    product.bytes ? body(int8_t{}, uint8_t{}) : body(int8_t{}, int16_t{});
  }
}

template <typename Code, typename Packed>
void PackCodes(const Code* codes, int64_t n, int32_t less, Packed* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Packed>(codes[i] - less);
}

// Packs rows [row, row + n) of a, [n][steps]. Elements behind the depth are 0.
using PackRows = absl::FunctionRef<void(int64_t row, int64_t n, int64_t group, void* to)>;
void Multiply(const Product& product, const void* packed_b, int32_t left_zero, PackRows pack_rows, Function* run,
              int32_t* c, void* scratch, kernels::Parallel& parallel);

// Element `i` of operand `operand`, a zero point of u8 or i8; 0 where it is absent.
int32_t ZeroPoint(const kernels::Kernel& kernel, size_t operand, absl::Span<const kernels::ConstBuffer> inputs,
                  int64_t i = 0);

// The values of a constant zero point, which packed codes depend on; "" where it is absent.
std::string TextOf(const Tensor* zero_point);

}  // namespace fuselage::integer

#endif  // FUSELAGE_KERNELS_INTEGER_PRODUCT_H_

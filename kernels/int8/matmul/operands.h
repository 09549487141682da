// The operands of a product of computed values, packed in each run for a variant of int8.linear:
//
//   sum_k (a[m, k] - z_a) * (b[k, n] - z_b) = sum a*b - z_b * sum_k a[m, k] - z_a * sum_k (b[k, n] - z_b)
//
// The last two are addends of rows and of columns, modulo 2^32.
#ifndef FUSELAGE_KERNELS_INT8_MATMUL_OPERANDS_H_
#define FUSELAGE_KERNELS_INT8_MATMUL_OPERANDS_H_

#include <cstdint>

#include "ir/base/tensor.h"
#include "kernels/core/variant.h"
#include "kernels/int8/linear/linear.h"

namespace fuselage::int8::matmul {

// Codes less their zero points are at most 255: no longer sum of products leaves 32 bits.
constexpr int64_t kMostDepth = ((int64_t{1} << 31) - 1) / (255 * 255);

// A matrix of b, whose codes become u8 codes where `flip` is their type's (UnsignedForm).
struct Right {
  const uint8_t* codes = nullptr;
  int64_t rows = 0, columns = 0;
  uint8_t flip = 0;
};
using PackPanelFunction = void(const Right& b, int64_t first, int64_t depth, int8_t* to, uint32_t* sums);
struct PanelFunctions {
  kernels::Isa isa;
  int block, group;
  PackPanelFunction *pack, *pack_transposed;  // Of b, and of its transpose.
};
absl::Span<const PanelFunctions> Panels();

FUSELAGE_VARIANTS(PackPanelFunction, PackPanel)
FUSELAGE_VARIANTS(PackPanelFunction, PackTransposedPanel)

class Operands {
 public:
  // a: u8 or i8 [..., depth]; b: u8 or i8 [depth, columns], or its transpose.
  Operands(const linear::Packing& packing, const TensorType& a, const TensorType& b, int64_t depth);

  int64_t packed_depth() const { return packed_depth_; }

  // Rows of a, in linear::PackedRowsBytes of `packed` or as they are, and their addends.
  const uint8_t* PackLeft(const uint8_t* a, int64_t rows, uint8_t* packed, int32_t* addends) const;
  // The addend of a row of a whose codes, less what packing moves them by, have this sum.
  int32_t RowAddend(int32_t sum) const {
    return static_cast<int32_t>(0u - static_cast<uint32_t>(b_zero_point_) * static_cast<uint32_t>(sum));
  }

  // The panel of columns [first, first + packing.block): as many times packed_depth codes, and their addends.
  void PackRight(const uint8_t* b, int64_t columns, int64_t first, int8_t* packed, int32_t* addends) const;
  // The same where b lies transposed, [columns, depth].
  void PackTransposed(const uint8_t* b, int64_t columns, int64_t first, int8_t* packed, int32_t* addends) const;

 private:
  void FinishAddends(int32_t* addends) const;

  const linear::Packing packing_;
  const DType a_type_;
  const int64_t depth_, packed_depth_;
  const PanelFunctions& panels_;
  bool moves_a_ = false;                         // a is packed as code + 128.
  uint8_t b_flip_ = 0;                           // To u8 codes.
  int32_t a_zero_point_ = 0, b_zero_point_ = 0;  // Of what is packed.
};

}  // namespace fuselage::int8::matmul

#endif  // FUSELAGE_KERNELS_INT8_MATMUL_OPERANDS_H_

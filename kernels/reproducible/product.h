// Matrix products in blocks, for everything that is a sum of products: convolutions too, whose left factor is gathered
// row by row from the image (im2col), one block at a time.
#ifndef FUSELAGE_KERNELS_REPRODUCIBLE_PRODUCT_H_
#define FUSELAGE_KERNELS_REPRODUCIBLE_PRODUCT_H_

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "kernels/core/kernel.h"
#include "kernels/reproducible/panels.h"
#include "kernels/reproducible/primitives.h"

namespace fuselage::reproducible {

// `count` products of equal shape: sums [rows, columns] = bias + left [rows, depth] * right [depth, columns].
struct ProductShape {
  int64_t count = 1, rows = 0, depth = 0, columns = 0;
};

// A kernel says where its factors come from and where the sums go.
class ProductKernel : public kernels::Kernel {
 protected:
  const Primitives& primitives() const { return primitives_; }

  ProductKernel(const kernels::KernelDesc& desc, const Primitives& primitives, const ProductShape& shape);

  using Inputs = absl::Span<const kernels::ConstBuffer>;

  // A piece of the left factor: elements [begin, end) of rows [row, row + rows). Row i goes to `to` + i * kRowStride.
  struct LeftPiece {
    int64_t product, row, rows, begin, end;
  };
  virtual void FillLeft(Inputs inputs, const LeftPiece& piece, float* to) const = 0;
  // The right factor, where it is an operand; PackRight's otherwise.
  virtual RightFactor Right(Inputs, int64_t /*product*/) const { return {}; }
  // A value for each column that the sums begin with; null: 0.
  virtual const float* Bias(int64_t /*product*/) const { return nullptr; }
  // Finishes elements [begin, end) of a row of the result.
  virtual void Store(Inputs inputs, void* output, int64_t product, int64_t row, int64_t begin, int64_t end,
                     const float* sums) const = 0;

  // Packs constant right factors once, one for each product modulo their number. They are the parameter "weight" as
  // `layout` and its shape say.
  void PackRight(const kernels::KernelDesc& desc, absl::string_view layout, const std::vector<RightFactor>& factors);

 private:
  struct Block;

  void Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
               const kernels::RunContext& context) const final;
  void ComputeBlock(const Block& block, Inputs inputs, void* output, float* scratch) const;

  const Primitives& primitives_;
  const ProductShape shape_;
  const int64_t block_rows_, block_columns_;
  int64_t thread_floats_ = 0;
  std::shared_ptr<const Tensor> packed_;  // [factors, floats of a factor]; null: none is constant.
};

}  // namespace fuselage::reproducible

#endif  // FUSELAGE_KERNELS_REPRODUCIBLE_PRODUCT_H_

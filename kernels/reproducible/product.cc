#include "kernels/reproducible/product.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fuselage::reproducible {
namespace {

// Rows and columns of a block at most: the left factor's rows stay in the second-level cache while all panels of the
// right one pass by, the sums too.
constexpr int64_t kBlockRows = 96, kBlockColumns = 512;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
int64_t Blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

}  // namespace

// A block of the result: rows [row, row + rows) and columns [column, column + columns) of one product.
struct ProductKernel::Block {
  int64_t product, row, rows, column, columns;
};

ProductKernel::ProductKernel(const kernels::KernelDesc& desc, const Primitives& primitives, const ProductShape& shape)
    : Kernel(desc),
      primitives_(primitives),
      shape_(shape),
      block_rows_(std::min(RoundUp(shape.rows, primitives.rows), RoundUp(kBlockRows, primitives.rows))),
      block_columns_(std::min(RoundUp(shape.columns, primitives.columns), RoundUp(kBlockColumns, primitives.columns))) {
  // A block's left factor, its sums, and its right factor where that is an operand.
  thread_floats_ = block_rows_ * kRowStride + block_columns_ * (block_rows_ + std::min(shape.depth, kDepth));
  thread_floats_ = RoundUp(thread_floats_, 16);
  set_scratch_bytes(std::max(desc.threads, 1) * thread_floats_ * static_cast<int64_t>(sizeof(float)));
  set_variant(primitives.name);
}

void ProductKernel::PackRight(const kernels::KernelDesc& desc, absl::string_view layout,
                              const std::vector<RightFactor>& factors) {
  const int64_t floats = RoundUp(shape_.columns, primitives_.columns) * shape_.depth;
  const TensorType type{DType::kF32, {static_cast<int64_t>(factors.size()), floats}, std::nullopt, Layout::kRowMajor};
  const auto pack = [&] {
    Tensor packed(type);
    float* to = packed.data<float>();
    for (const RightFactor& factor : factors) {
      PackPanels(factor, {0, shape_.columns, 0, shape_.depth}, primitives_.columns, to);
      to += floats;
    }
    return packed;
  };
  packed_ =
      desc.Packed("weight", absl::StrCat("reproducible ", layout, " ", primitives_.columns, " ", ToString(type)), pack);
  set_weight_bytes(0, {packed_});
}

void ProductKernel::Compute(absl::Span<const kernels::ConstBuffer> inputs, absl::Span<const kernels::Buffer> outputs,
                            const kernels::RunContext& context) const {
  const int64_t row_blocks = Blocks(shape_.rows, block_rows_), column_blocks = Blocks(shape_.columns, block_columns_);
  const int64_t tasks = shape_.count * row_blocks * column_blocks;
  context.parallel->For(static_cast<int>(tasks), [&](int task, int thread) {
    Block block;
    block.row = task % row_blocks * block_rows_;
    block.column = task / row_blocks % column_blocks * block_columns_;
    block.product = task / row_blocks / column_blocks;
    block.rows = std::min(block_rows_, shape_.rows - block.row);
    block.columns = std::min(block_columns_, shape_.columns - block.column);
    ComputeBlock(block, inputs, outputs[0].data, static_cast<float*>(context.scratch.data) + thread * thread_floats_);
  });
}

void ProductKernel::ComputeBlock(const Block& block, Inputs inputs, void* output, float* scratch) const {
  const int64_t height = primitives_.rows, width = primitives_.columns;
  const int64_t rows = RoundUp(block.rows, height), columns = RoundUp(block.columns, width);
  float* const left = scratch;
  float* const sums = left + block_rows_ * kRowStride;
  float* const right = sums + block_rows_ * block_columns_;

  std::fill_n(sums, rows * columns, 0.0f);
  if (const float* bias = Bias(block.product)) {
    for (int64_t i = 0; i < block.rows; ++i) std::copy_n(bias + block.column, block.columns, sums + i * columns);
  }
  for (int64_t begin = 0; begin < shape_.depth; begin += kDepth) {
    const int64_t depth = std::min(kDepth, shape_.depth - begin);
    FillLeft(inputs, {block.product, block.row, block.rows, begin, begin + depth}, left);
    for (int64_t i = block.rows; i < rows; ++i) std::fill_n(left + i * kRowStride, depth, 0.0f);

    const float* panels = right;
    int64_t panel_floats = shape_.depth * width;
    if (packed_ == nullptr) {
      panel_floats =
          PackPanels(Right(inputs, block.product), {block.column, block.columns, begin, begin + depth}, width, right);
    } else {
      panels = packed_->data<float>() + block.product % packed_->dim(0) * packed_->dim(1) +
               block.column * shape_.depth + begin * width;
    }
    for (int64_t j = 0; j < columns; j += width) {
      const float* panel = panels + j / width * panel_floats;
      for (int64_t i = 0; i < rows; i += height) {
        primitives_.tile(left + i * kRowStride, panel, depth, sums + i * columns + j, columns);
      }
    }
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    Store(inputs, output, block.product, block.row + i, block.column, block.column + block.columns, sums + i * columns);
  }
}

}  // namespace fuselage::reproducible

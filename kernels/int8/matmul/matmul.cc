#include "kernels/int8/matmul/matmul.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "kernels/core/matmul_shape.h"
#include "kernels/core/requantize.h"
#include "kernels/int8/matmul/operands.h"

namespace fuselage::int8::matmul {
namespace {

using kernels::Epilogue;
using kernels::KernelDesc;
using kernels::MatmulShape;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Bytes of scratch memory, one after the other.
class Areas {
 public:
  int64_t Add(int64_t bytes) {
    const int64_t begin = bytes_;
    bytes_ = RoundUp(bytes_ + bytes, 64);
    return begin;
  }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// Whether matrices times a column are better the column, as a row, times matrices that lie transposed: results then
// fill vectors of channels, where one channel would leave most of each empty. Long rows take longer to pack than that
// spares.
bool IsColumnAsRow(const MatmulShape& shape) { return shape.columns == 1 && shape.depth <= 128; }

MatmulShape OfColumnAsRow(MatmulShape shape) {
  std::swap(shape.rows, shape.columns);
  std::swap(shape.a_matrices, shape.b_matrices);
  std::swap(shape.a, shape.b);
  return shape;
}

class Matmul : public kernels::BinaryKernel {
 public:
  Matmul(const KernelDesc& desc, const MatmulShape& shape, const Epilogue& epilogue, const linear::Variant& variant)
      : BinaryKernel(desc),
        column_as_row_(IsColumnAsRow(shape)),
        shape_(column_as_row_ ? OfColumnAsRow(shape) : shape),
        variant_(variant),
        operands_(variant.packing, desc.input(column_as_row_), desc.input(!column_as_row_), shape_.depth) {
    const TensorType& y = desc.output();
    const linear::Packing& packing = variant.packing;
    params_.rows = shape_.rows;
    params_.channels = shape_.columns;
    params_.depth = params_.pitch = operands_.packed_depth();
    columns_ = RoundUp(shape_.columns, packing.block);
    linear::SetOutput(y, Activation(), &params_);
    row_bytes_ = shape_.columns * ByteSize(y.dtype);
    multiplier_.assign(columns_, params_.float_output ? epilogue.float_scale[0] : epilogue.multiplier[0]);
    float_bias_.assign(columns_, 0);
    step_offsets_ = linear::StepOffsets(packing, params_.depth);
    params_.multiplier = multiplier_.data();
    params_.float_bias = float_bias_.data();
    params_.step_offsets = step_offsets_.data();
    const int64_t rows = std::min(shape_.rows, variant.task_rows);
    Areas shared, own;
    b_ = shared.Add(shape_.b_matrices * columns_ * params_.depth);
    addends_ = shared.Add(shape_.b_matrices * columns_ * int64_t{sizeof(int32_t)});
    own_ = shared.bytes();
    own.Add(linear::PackedRowsBytes(packing, rows, shape_.depth));
    row_addends_ = own.Add(rows * int64_t{sizeof(int32_t)});
    own_bytes_ = own.bytes();
    set_scratch_bytes(own_ + own_bytes_ * std::max(1, desc.threads));
    set_weight_bytes(columns_ * int64_t{2 * sizeof(float)});
    set_variant(variant.name);
  }

 private:
  void ComputeBinary(const void* a, const void* b, void* y, const kernels::RunContext& context) const override {
    if (column_as_row_) std::swap(a, b);
    uint8_t* scratch = static_cast<uint8_t*>(context.scratch.data);
    const auto pack = column_as_row_ ? &Operands::PackTransposed : &Operands::PackRight;
    const int64_t block = variant_.packing.block, panels = columns_ / block;
    kernels::ForRanges(*context.parallel, shape_.b_matrices * panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) {
        const int64_t matrix = panel / panels, first = panel % panels * block, column = matrix * columns_ + first;
        (operands_.*pack)(static_cast<const uint8_t*>(b) + matrix * shape_.depth * shape_.columns, shape_.columns,
                          first, reinterpret_cast<int8_t*>(scratch + b_) + column * params_.depth,
                          reinterpret_cast<int32_t*>(scratch + addends_) + column);
      }
    });
    const int64_t row_parts = (shape_.rows + variant_.task_rows - 1) / variant_.task_rows;
    const int64_t tasks = static_cast<int64_t>(shape_.a.size()) * row_parts;
    if (tasks == 0) return;
    // Where there are few rows, the threads share the columns.
    const int64_t column_parts = std::min<int64_t>(panels, (context.parallel->threads() + tasks - 1) / tasks);
    context.parallel->For(static_cast<int>(tasks * column_parts), [&](int task, int thread) {
      const int64_t part = task % column_parts, product = task / column_parts / row_parts;
      const int64_t row = task / column_parts % row_parts * variant_.task_rows;
      const int64_t rows = std::min(shape_.rows - row, variant_.task_rows), right = shape_.b[product];
      uint8_t* own = scratch + own_ + thread * own_bytes_;
      int32_t* row_addends = reinterpret_cast<int32_t*>(own + row_addends_);
      const uint8_t* left =
          operands_.PackLeft(static_cast<const uint8_t*>(a) + (shape_.a[product] * shape_.rows + row) * shape_.depth,
                             rows, own, row_addends);
      linear::Params params = params_;
      params.rows = rows;
      params.weight = reinterpret_cast<const int8_t*>(scratch + b_) + right * columns_ * params_.depth;
      params.addend = reinterpret_cast<const int32_t*>(scratch + addends_) + right * columns_;
      params.row_addend = row_addends;
      uint8_t* result = static_cast<uint8_t*>(y) + (product * shape_.rows + row) * row_bytes_;
      variant_.run(params, left, result,
                   {0, rows, panels * part / column_parts * block,
                    std::min(shape_.columns, panels * (part + 1) / column_parts * block)});
    });
  }

  const bool column_as_row_;
  const MatmulShape shape_;
  const linear::Variant variant_;
  const Operands operands_;
  linear::Params params_;
  int64_t columns_ = 0;    // With those that fill the last block.
  int64_t row_bytes_ = 0;  // Of the result.
  // Scratch memory: b packed, and addends for its columns; then for each thread rows of a, and addends for them.
  int64_t b_ = 0, addends_ = 0, own_ = 0, row_addends_ = 0, own_bytes_ = 0;
  std::vector<float> multiplier_, float_bias_;
  std::vector<int64_t> step_offsets_;
};

}  // namespace

absl::StatusOr<Epilogue> CheckedEpilogue(const KernelDesc& desc) {
  const Tensor weight({DType::kI8, {1, 0}, PerTensor(desc.input(1).quant->scale()), Layout::kRowMajor});
  kernels::EpilogueParams params;
  params.input = &desc.input(0);
  params.weight = &weight;
  params.output = &desc.output();
  return kernels::MakeEpilogue(params);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> CreateVariant(const KernelDesc& desc, const linear::Variant& variant) {
  ASSIGN_OR_RETURN(const MatmulShape shape, kernels::MatmulShapeOf(desc));
  if (shape.depth > kMostDepth) {
    return absl::FailedPreconditionError(
        absl::StrCat("matmul: sums of ", shape.depth, " products may overflow 32 bits, wanted at most ", kMostDepth));
  }
  RETURN_IF_ERROR(kernels::CheckCodes(desc.input(1), "other"));
  ASSIGN_OR_RETURN(const Epilogue epilogue, CheckedEpilogue(desc));
  return std::make_unique<Matmul>(desc, shape, epilogue, variant);
}

absl::StatusOr<std::unique_ptr<kernels::Kernel>> Create(const KernelDesc& desc) {
  ASSIGN_OR_RETURN(const MatmulShape shape, kernels::MatmulShapeOf(desc));
  return matmul::CreateVariant(desc, linear::VariantFor(desc.isa, IsColumnAsRow(shape) ? 1 : shape.rows));
}

void Register(kernels::KernelRegistry& registry) {
  registry.Register({"int8.matmul", kernels::LayoutRule::kRowMajor, Create});
}

}  // namespace fuselage::int8::matmul

// What every algorithm is made from, and what it is: a checked description, and a convolution with packed weights.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_CORE_PROBLEM_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_CORE_PROBLEM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "kernels/core/kernel.h"
#include "kernels/core/multiply/pairs.h"
#include "kernels/core/placement/placement.h"
#include "kernels/core/pool_window.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::conv2d {

// From begin to before end; empty where they are equal.
struct Range {
  int64_t begin, end;
};

// Sizes of a convolution. Channels are of the whole tensor, not of a group.
struct Geometry {
  int batch, in_channels, in_height, in_width;
  int out_channels, out_height, out_width;
  int kernel_height, kernel_width;
  int stride_y, stride_x;
  int pad_top, pad_left;
  int dilation_y, dilation_x;
  int groups;

  int group_in_channels() const { return in_channels / groups; }
  int group_out_channels() const { return out_channels / groups; }
  int64_t macs() const {
    return int64_t{1} * batch * out_height * out_width * out_channels * group_in_channels() * kernel_height *
           kernel_width;
  }

  // Outputs whose tap lies inside the input.
  Range RowsOfTap(int ky) const;
  Range ColumnsOfTap(int kx) const;
  // Pairs of an output and a tap, of an image: all, and those inside.
  int64_t taps() const { return int64_t{1} * out_height * out_width * kernel_height * kernel_width; }
  int64_t taps_inside() const;
  bool few_inside() const { return 8 * taps_inside() <= 5 * taps(); }
};

// A checked description. Groups of so few channels that most of a vector would be empty are several as one, between
// whose channels weights are 0: `geometry` has them so.
struct Problem {
  Problem();
  Problem(const Problem&);
  Problem(Problem&&) noexcept;
  Problem& operator=(Problem&&) noexcept;
  ~Problem();

  Geometry geometry;
  int described_groups = 1;
  const int8_t* weight = nullptr;            // [oc, ic/groups, kh, kw], row-major: the tensor's, or
  std::shared_ptr<const Tensor> own_weight;  // of groups that are several as one; null: there are none.
  int64_t max_abs_weight_sum = 0;  // The largest sum |w| of an output channel.
  DType input_type = DType::kU8;
  int32_t input_zero_point = 0;
  DType output_type = DType::kU8;
  bool has_residual = false;
  DType residual_type = DType::kU8;
  bool relu = false;
  kernels::Epilogue epilogue;
  const kernels::KernelDesc* desc = nullptr;  // What it is the problem of.
  int threads = 1;
  kernels::Placement input_placement, residual_placement, output_placement;
  std::optional<kernels::PoolWindow::Axis> row_pool;  // See CreateBand.

  kernels::Pairs pairs() const { return kernels::PairsOf(epilogue.mean_weight, epilogue.largest_weight); }

  // The same on dense operands.
  Problem Dense() const {
    Problem dense = *this;
    dense.input_placement = dense.residual_placement = dense.output_placement = kernels::Placement();
    return dense;
  }

  // Rows of one pixel each fill no product, and a dense image of one column lies in memory as one of one row does: the
  // same over that. For who computes no more than the convolution, since its outputs' rows are columns.
  Problem ColumnAsRow() &&;

  // No operand lies in blocks or planes: what goes by rows and pixels takes no others.
  bool by_rows() const {
    return input_placement.blocking == kernels::Blocking::kNone &&
           residual_placement.blocking == kernels::Blocking::kNone &&
           output_placement.blocking == kernels::Blocking::kNone;
  }

  kernels::PlacedTensor PlacedInput() const {
    return {{geometry.batch, geometry.in_channels, geometry.in_height, geometry.in_width}, input_placement};
  }
  kernels::PlacedTensor PlacedResidual() const { return {OutputShape(), residual_placement}; }
  kernels::PlacedTensor PlacedOutput() const { return {OutputShape(), output_placement}; }

 private:
  Shape OutputShape() const {
    return {geometry.batch, geometry.out_channels, geometry.out_height, row_pool ? row_pool->out : geometry.out_width};
  }
};

// InvalidArgument: operands that contradict each other; Unimplemented: a form that no variant runs; FailedPrecondition:
// the accumulator cannot be proven to fit 32 bits, or the result overflows.
absl::StatusOr<Problem> ProblemOf(const kernels::KernelDesc& desc);

// Operands of one run.
struct Arguments {
  const void* input = nullptr;
  const void* residual = nullptr;  // Null: none.
  void* output = nullptr;
};

// A convolution with its weights packed for one variant.
class Algorithm {
 public:
  virtual ~Algorithm() = default;
  virtual int64_t scratch_bytes() const = 0;
  virtual int64_t constant_bytes() const { return 0; }  // Without the weight's.
  virtual void Run(const Arguments& arguments, const kernels::RunContext& context) const = 0;

  const std::shared_ptr<const Tensor>& weight() const { return weight_; }

 protected:
  // `layout`: see PackedWeights.
  void SetWeight(const Problem& problem, const std::string& layout, absl::FunctionRef<Tensor()> pack) {
    weight_ = problem.desc->Packed("weight", layout, pack);
  }

  std::shared_ptr<const Tensor> weight_;
};

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_CORE_PROBLEM_H_

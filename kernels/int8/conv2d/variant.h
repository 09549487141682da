// How the variants of int8.conv2d are described and what they are made from. Internal to this folder and its tests.
#ifndef FUSELAGE_KERNELS_INT8_CONV2D_VARIANT_H_
#define FUSELAGE_KERNELS_INT8_CONV2D_VARIANT_H_

#include <cstdint>
#include <memory>

#include "kernels/core/isa.h"
#include "kernels/core/kernel.h"
#include "kernels/core/placement.h"
#include "kernels/core/requantize.h"

namespace fuselage::int8::conv2d {

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
};

// What a variant is made for. Pointers live while the algorithm is made, `epilogue` is copied.
struct Problem {
  Geometry geometry;
  const int8_t* weight = nullptr;  // [oc, ic/groups, kh, kw], row-major.
  int64_t max_abs_weight_sum = 0;  // The largest sum |w| of an output channel.
  DType input_type = DType::kU8;
  int32_t input_zero_point = 0;
  DType output_type = DType::kU8;
  bool has_residual = false;
  DType residual_type = DType::kU8;
  bool relu = false;
  const kernels::Epilogue* epilogue = nullptr;
  int threads = 1;
  kernels::Placement input_placement, residual_placement, output_placement;

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
  Shape OutputShape() const { return {geometry.batch, geometry.out_channels, geometry.out_height, geometry.out_width}; }
};

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
  virtual int64_t weight_bytes() const = 0;
  virtual void Run(const Arguments& arguments, const kernels::RunContext& context) const = 0;
};

struct Variant {
  const char* name;
  kernels::Isa isa;
  bool (*supports)(const Problem&);    // Correct for it, proven.
  bool (*worthwhile)(const Problem&);  // Faster than the variants before it in the table, by measurement.
  std::unique_ptr<Algorithm> (*make)(const Problem&);
  kernels::Placement (*wish)(const Problem&) = nullptr;  // Of the input; null: any is as good.
  bool (*reads_halo)(const Problem&) = nullptr;          // See ReadsHalo in conv2d.h; null: never.
};

}  // namespace fuselage::int8::conv2d

#endif  // FUSELAGE_KERNELS_INT8_CONV2D_VARIANT_H_

// max_pool1d, 2d, 3d and avg_pool1d, 2d, 3d: a value for each window (ONNX MaxPool, AveragePool; torch.nn.functional).
//
//   input  [N, C, spatial...]
//   result [N, C, spatial'...]
//
// spatial' = floor((spatial + begin + end - dilation*(kernel - 1) - 1) / stride) + 1; ceil_mode rounds up instead, but
// drops a window that would start in the end padding.
// Attributes: kernel_size, stride (one value an axis), padding (begins, then ends; less than the window's extent),
// dilation (max only), ceil_mode, count_include_pad (avg only).
// max: padding never wins; a window without an element gives minus infinity (as in PyTorch; onnxruntime gives the
//   lowest float), or the lowest integer or code. A NaN wins. Floats, integers, and codes, whose per-tensor
//   quantization parameters the result keeps.
// max_pool1d_with_indices, 2d, 3d: the same, and for each window the place of its maximum in the plane [spatial...]
//   (i64): the first of equal ones; 0 for a window without an element (torch.nn.functional.max_pool2d_with_indices).
// avg: the mean of the elements inside, or, if count_include_pad, of those inside the padded input, padding being 0.
//   A window without an element gives 0. Floats only.
#ifndef FUSELAGE_IR_OPS_POOL_POOL_H_
#define FUSELAGE_IR_OPS_POOL_POOL_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/op.h"
#include "ir/ops/core/window.h"

namespace fuselage::ops::pool {

// What the lowered pools (ir/ops/int8/pool) share.
std::vector<ir::AttributeSpec> MaxPoolAttributes(int n);
std::vector<ir::AttributeSpec> AvgPoolAttributes(int n);

// Rank and attributes, as the schema has them.
absl::StatusOr<Window> CheckPool(const ir::InferCall& call, int n);
// The same of a call that has passed inference.
Window WindowOf(const ir::OpCall& call, const Shape& input);
// [N, C, spatial'...].
Shape ResultShape(const Window& window, const Shape& input);
// The maximum over each window, of values or codes.
Tensor MaxPool(const Window& window, const Tensor& input, const TensorType& result);
// Elements that the mean at `output` divides by.
int64_t Divisor(const Window& window, int64_t output, bool count_include_pad);

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::pool

#endif  // FUSELAGE_IR_OPS_POOL_POOL_H_

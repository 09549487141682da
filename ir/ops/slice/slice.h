// Ops that take parts of a value:
//
//   slice(starts, ends, axes, steps)   elements starts[i], starts[i] + steps[i], ... before ends[i] on axis axes[i]
//                                      (ONNX Slice). Negative positions count from the end, all are clamped to the
//                                      axis; a negative step walks backwards. No axes: 0, 1, ...; no steps: 1.
//   split(sizes, dim)                  -> tuple of consecutive parts of these sizes along `dim` (ONNX Split,
//                                      torch.split with a list)
//   getitem(index)                     the element of a tuple; a negative index counts from the end
//
// Any element type; slice and split keep per-tensor quantization parameters.
#ifndef FUSELAGE_IR_OPS_SLICE_SLICE_H_
#define FUSELAGE_IR_OPS_SLICE_SLICE_H_

#include "ir/op.h"

namespace fuselage::ops::slice {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::slice

#endif  // FUSELAGE_IR_OPS_SLICE_SLICE_H_

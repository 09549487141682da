// Ops that give the same elements, in the same order, another shape:
//
//   flatten(start_dim, end_dim)   merges the axes from start_dim to end_dim (torch.flatten)
//   reshape(shape, allow_zero)    -1 stands for what is left, 0 for the input's own dimension unless allow_zero
//                                 (ONNX Reshape)
//   squeeze(dims)                 drops the axes `dims`, which must be 1; where it is empty, all of size 1
//                                 (ONNX Squeeze)
//   unsqueeze(dims)               inserts axes of size 1 at the places `dims` of the result (ONNX Unsqueeze)
//
// Any element type. Quantization parameters stay; a quantization axis moves along, and must survive.
#ifndef FUSELAGE_IR_OPS_VIEW_VIEW_H_
#define FUSELAGE_IR_OPS_VIEW_VIEW_H_

#include "ir/op.h"

namespace fuselage::ops::view {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::view

#endif  // FUSELAGE_IR_OPS_VIEW_VIEW_H_

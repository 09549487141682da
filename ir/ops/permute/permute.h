// permute(dims): axis k of the result is axis dims[k] of the input (torch.permute, ONNX Transpose).
// transpose(dim0, dim1): swaps two axes (torch.transpose).
//
// Any element type. Quantization parameters stay; a quantization axis moves along.
#ifndef FUSELAGE_IR_OPS_PERMUTE_PERMUTE_H_
#define FUSELAGE_IR_OPS_PERMUTE_PERMUTE_H_

#include "ir/op.h"

namespace fuselage::ops::permute {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::permute

#endif  // FUSELAGE_IR_OPS_PERMUTE_PERMUTE_H_

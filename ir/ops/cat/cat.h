// cat(inputs...; dim): tensors joined along `dim` (torch.cat, ONNX Concat).
//
// Any element type, the same for all; other dimensions agree. Codes need the same per-tensor quantization parameters
// everywhere, and the result keeps them.
#ifndef FUSELAGE_IR_OPS_CAT_CAT_H_
#define FUSELAGE_IR_OPS_CAT_CAT_H_

#include "ir/op.h"

namespace fuselage::ops::cat {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::cat

#endif  // FUSELAGE_IR_OPS_CAT_CAT_H_

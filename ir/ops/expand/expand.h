// expand(input; shape): repeats the input along axes of size 1 until it has `shape` (torch.Tensor.expand). -1 keeps the
// input's own dimension; further axes may come in front.
//
// Any element type; keeps per-tensor quantization parameters.
#ifndef FUSELAGE_IR_OPS_EXPAND_EXPAND_H_
#define FUSELAGE_IR_OPS_EXPAND_EXPAND_H_

#include "ir/op.h"

namespace fuselage::ops::expand {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::expand

#endif  // FUSELAGE_IR_OPS_EXPAND_EXPAND_H_

// softmax(dim): e^x / sum of e^x along `dim` (ONNX Softmax from opset 13, torch.softmax). Floats; computes in double,
// with the maximum subtracted first.
#ifndef FUSELAGE_IR_OPS_SOFTMAX_SOFTMAX_H_
#define FUSELAGE_IR_OPS_SOFTMAX_SOFTMAX_H_

#include "ir/op.h"

namespace fuselage::ops::softmax {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::softmax

#endif  // FUSELAGE_IR_OPS_SOFTMAX_SOFTMAX_H_

// softmax(dim): e^x / sum of e^x along `dim` (ONNX Softmax from opset 13, torch.softmax)
// log_softmax(dim): its natural logarithm (ONNX LogSoftmax, torch.log_softmax)
// hardmax(dim): 1 for the first of the largest elements along `dim`, 0 for all others (ONNX Hardmax)
//
// Floats; computes in double, with the maximum subtracted first.
#ifndef FUSELAGE_IR_OPS_SOFTMAX_SOFTMAX_H_
#define FUSELAGE_IR_OPS_SOFTMAX_SOFTMAX_H_

#include "ir/op.h"

namespace fuselage::ops::softmax {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::softmax

#endif  // FUSELAGE_IR_OPS_SOFTMAX_SOFTMAX_H_

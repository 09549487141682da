// where(condition, input, other): element i is input's where condition's is true, else other's, with NumPy broadcasting
// of the three (ONNX Where, torch.where). condition: bool; input and other: any one element type, without codes.
#ifndef FUSELAGE_IR_OPS_WHERE_WHERE_H_
#define FUSELAGE_IR_OPS_WHERE_WHERE_H_

#include "ir/op.h"

namespace fuselage::ops::where {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::where

#endif  // FUSELAGE_IR_OPS_WHERE_WHERE_H_

// pad(pads, mode, value): elements added around a tensor (ONNX Pad).
//
//   pads   2*rank: what each axis gets in front, then what each gets behind; negative cuts (mode "constant" only)
//   mode   "constant": `value`;  "edge": the nearest element;  "reflect": mirrored at the first and last element, so at
//          most dimension - 1;  "wrap": periodic
//
// Any element type; codes with one scale keep their parameters, and `value` is 0 there, for which their zero point
// stands.
#ifndef FUSELAGE_IR_OPS_PAD_PAD_H_
#define FUSELAGE_IR_OPS_PAD_PAD_H_

#include "ir/op.h"

namespace fuselage::ops::pad {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::pad

#endif  // FUSELAGE_IR_OPS_PAD_PAD_H_

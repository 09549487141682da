// to(dtype): the values in another element type (ONNX Cast, torch.Tensor.to).
//
// Float to integer truncates toward zero and saturates, NaN gives 0; integer to integer is modulo 2^bits; anything but
// 0 is true. Codes must be dequantized first.
#ifndef FUSELAGE_IR_OPS_CAST_CAST_H_
#define FUSELAGE_IR_OPS_CAST_CAST_H_

#include "ir/op.h"

namespace fuselage::ops::cast {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::cast

#endif  // FUSELAGE_IR_OPS_CAST_CAST_H_

// tril(input; diagonal), triu(input; diagonal): the lower, or upper, triangle of the last two axes, diagonal included;
// 0 elsewhere (torch.tril, torch.triu; ONNX Trilu). diagonal > 0 is above the main one, < 0 below. Any element type,
// without quantized codes.
#ifndef FUSELAGE_IR_OPS_TRIANGLE_TRIANGLE_H_
#define FUSELAGE_IR_OPS_TRIANGLE_TRIANGLE_H_

#include "ir/op.h"

namespace fuselage::ops::triangle {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::triangle

#endif  // FUSELAGE_IR_OPS_TRIANGLE_TRIANGLE_H_

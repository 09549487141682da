// topk(input; k, dim, largest, sorted): the k largest (or smallest) elements along an axis, and their positions as i64
// (torch.topk; ONNX TopK). Best first, whether or not sorted; of equal ones the first; NaN is larger than any number.
// Numbers; codes keep their per-tensor quantization parameters.
#ifndef FUSELAGE_IR_OPS_TOPK_TOPK_H_
#define FUSELAGE_IR_OPS_TOPK_TOPK_H_

#include "ir/op.h"

namespace fuselage::ops::topk {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::topk

#endif  // FUSELAGE_IR_OPS_TOPK_TOPK_H_

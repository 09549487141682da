// argmax, argmin (dim, keepdim, select_last_index): the index, i64, of the largest or smallest element along `dim`; of
// equal ones the first, or the last where select_last_index says so (ONNX ArgMax, ArgMin; torch.argmax, torch.argmin).
// A NaN counts as the largest and the smallest. Any numbers; `dim` must not be empty.
#ifndef FUSELAGE_IR_OPS_ARGMAX_ARGMAX_H_
#define FUSELAGE_IR_OPS_ARGMAX_ARGMAX_H_

#include "ir/op.h"

namespace fuselage::ops::argmax {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::argmax

#endif  // FUSELAGE_IR_OPS_ARGMAX_ARGMAX_H_

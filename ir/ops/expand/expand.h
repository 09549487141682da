// expand(input; shape, batch): repeats the input along axes of size 1 until it has `shape` (torch.Tensor.expand). -1 keeps the
// input's own dimension; further axes may come in front.
//   batch  0, or the size of axis 0 in place of shape[0]: the batch of the graph's inputs, which Graph::SetBatch sets
//          (x.expand(n, -1, -1) of a class token).
//
// Any element type; keeps per-tensor quantization parameters.
#ifndef FUSELAGE_IR_OPS_EXPAND_EXPAND_H_
#define FUSELAGE_IR_OPS_EXPAND_EXPAND_H_

#include "ir/op.h"

namespace fuselage::ops::expand {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::expand

#endif  // FUSELAGE_IR_OPS_EXPAND_EXPAND_H_

// mean(dims, keepdim): the mean over the axes in `dims`, all of them where it is empty (ONNX ReduceMean, torch.mean).
// global_avg_pool: [N, C, spatial...] -> [N, C, 1...], the mean over the spatial axes (ONNX GlobalAveragePool).
//
// Floats; sums in double, in row-major order.
#ifndef FUSELAGE_IR_OPS_REDUCE_REDUCE_H_
#define FUSELAGE_IR_OPS_REDUCE_REDUCE_H_

#include "ir/op.h"

namespace fuselage::ops::reduce {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::reduce

#endif  // FUSELAGE_IR_OPS_REDUCE_REDUCE_H_

// mean, sum, prod, amax, amin, logsumexp (dims, keepdim): over the axes in `dims`, all of them where it is empty
// (ONNX ReduceMean, ReduceSum, ...; torch.mean, torch.sum, ...).
// global_avg_pool: [N, C, spatial...] -> [N, C, 1...], the mean over the spatial axes (ONNX GlobalAveragePool).
//
// Floats in double, in row-major order; with a NaN amax and amin are NaN. sum and prod also take integers, modulo
// 2^bits; amax and amin those and bools, but no empty sets.
#ifndef FUSELAGE_IR_OPS_REDUCE_REDUCE_H_
#define FUSELAGE_IR_OPS_REDUCE_REDUCE_H_

#include "ir/op.h"

namespace fuselage::ops::reduce {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::reduce

#endif  // FUSELAGE_IR_OPS_REDUCE_REDUCE_H_

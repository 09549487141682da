// adaptive_avg_pool1d, 2d, 3d: the mean over windows that tile the input (torch.nn.functional, torch.nn).
//
//   input [N, C, spatial...] -> [N, C, output_size...]
//
// Output i of an axis is the mean over [floor(i * in / out), ceil((i + 1) * in / out)): neighbours overlap where out
// does not divide in. Attributes: output_size, one value an axis. Floats only; computes in double.
#ifndef FUSELAGE_IR_OPS_ADAPTIVE_AVG_POOL_ADAPTIVE_AVG_POOL_H_
#define FUSELAGE_IR_OPS_ADAPTIVE_AVG_POOL_ADAPTIVE_AVG_POOL_H_

#include "ir/op.h"

namespace fuselage::ops::adaptive_avg_pool {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::adaptive_avg_pool

#endif  // FUSELAGE_IR_OPS_ADAPTIVE_AVG_POOL_ADAPTIVE_AVG_POOL_H_

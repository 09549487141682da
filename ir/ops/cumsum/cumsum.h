// cumsum(dim, exclusive, reverse): sums of the elements up to each along `dim`, itself included unless `exclusive`,
// from the end where `reverse` (ONNX CumSum, torch.cumsum). Floats sum in double and round each sum once; integers are
// exact modulo 2^bits.
#ifndef FUSELAGE_IR_OPS_CUMSUM_CUMSUM_H_
#define FUSELAGE_IR_OPS_CUMSUM_CUMSUM_H_

#include "ir/op.h"

namespace fuselage::ops::cumsum {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::cumsum

#endif  // FUSELAGE_IR_OPS_CUMSUM_CUMSUM_H_

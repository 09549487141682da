// A few operators for tests of the IR itself, which must not depend on ir/ops.
#ifndef FUSELAGE_IR_TESTING_TINY_OPS_H_
#define FUSELAGE_IR_TESTING_TINY_OPS_H_

#include "ir/op.h"

namespace fuselage::testing {

// relu (alias torch.relu; attribute slope float=0), add, scale(x, weight parameter, bias parameter optional, residual
// optional; factors floats=[], names strings=[], steps ints=[], mode string="a", as dtype=f32, on bool=true), halves(x)
// -> two tensors, getitem, cat (variadic).
void RegisterTinyOps(ir::OpRegistry& ops);

}  // namespace fuselage::testing

#endif  // FUSELAGE_IR_TESTING_TINY_OPS_H_

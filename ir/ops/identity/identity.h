// identity: its operand, any type. dropout(p, training): identity too, in inference; evaluating it in training is
// Unimplemented, for its result is random.
#ifndef FUSELAGE_IR_OPS_IDENTITY_IDENTITY_H_
#define FUSELAGE_IR_OPS_IDENTITY_IDENTITY_H_

#include "ir/op.h"

namespace fuselage::ops::identity {

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::identity

#endif  // FUSELAGE_IR_OPS_IDENTITY_IDENTITY_H_

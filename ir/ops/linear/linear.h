// linear: a fully connected layer (torch.nn.functional.linear).
//
//   input  [..., in]
//   weight [out, in]   parameter; may be quantized, and then means its dequantized values
//   bias   [out]       parameter, optional
//   result [..., out] = activation(input * weight^T + bias)
//
// Attribute: activation (ir/base/activation.h). Floats only; accumulates in double, in the order of `in`.
#ifndef FUSELAGE_IR_OPS_LINEAR_LINEAR_H_
#define FUSELAGE_IR_OPS_LINEAR_LINEAR_H_

#include "ir/op.h"

namespace fuselage::ops::linear {

enum Operand { kInput, kWeight, kBias };

// Operands, attributes and flags, which int8.linear shares; no name and no functions.
ir::OpSchema LinearSchema();

// The result's shape, from the operands' shapes.
absl::StatusOr<Shape> CheckLinear(const ir::InferCall& call);

void Register(ir::OpRegistry& registry);

}  // namespace fuselage::ops::linear

#endif  // FUSELAGE_IR_OPS_LINEAR_LINEAR_H_

// What the quantized form of an op makes of a call of that op.
#ifndef FUSELAGE_PASSES_CORE_QUANTIZED_FORM_H_
#define FUSELAGE_PASSES_CORE_QUANTIZED_FORM_H_

#include "ir/graph.h"

namespace fuselage::passes {

// Whether a graph that holds the call is quantized already: a quantize, a dequantize of any kind, or an op on codes.
bool IsQuantizedOp(const ir::Node& node);

// The form's attributes: the node's where it has them, else their defaults.
AttributeMap FormAttributes(const ir::Node& node, const ir::OpSchema& form);

// Whether the form takes this operand as it is, beside codes for the others: a mask. Its type inference says so.
bool TakesAsItIs(const ir::Node& node, const ir::OpSchema& form, int operand);

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_QUANTIZED_FORM_H_

// What the quantized form of an op makes of a call of that op.
#ifndef FUSELAGE_PASSES_CORE_QUANTIZED_FORM_H_
#define FUSELAGE_PASSES_CORE_QUANTIZED_FORM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"

namespace fuselage::passes {

// Whether a graph that holds the call is quantized already: a quantize, a dequantize of any kind, or an op on codes.
bool IsQuantizedOp(const ir::Node& node);

// The form's attributes: the node's where it has them, else their defaults.
AttributeMap FormAttributes(const ir::Node& node, const ir::OpSchema& form);

// The weights of an op, which have codes where it is quantized: operands with an axis of channels.
std::vector<const ir::OperandSpec*> WeightsOf(const ir::OpSchema& op);

// The type of the form's result, from codes for these operands of the node, and for its weights; or why it has none.
absl::StatusOr<ir::Type> InferForm(const ir::Node& node, const ir::OpSchema& form, const std::vector<int>& operands);

// Whether the form takes this operand as it is, beside codes for all others (a mask) or for the first one (the initial
// state of a recurrent layer, which may have several such). Its type inference says so.
bool TakesAsItIs(const ir::Node& node, const ir::OpSchema& form, int operand);

}  // namespace fuselage::passes

#endif  // FUSELAGE_PASSES_CORE_QUANTIZED_FORM_H_

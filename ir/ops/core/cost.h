// Arithmetic that several operators count (ir::OpSchema::operations_per_element).
#ifndef FUSELAGE_IR_OPS_CORE_COST_H_
#define FUSELAGE_IR_OPS_CORE_COST_H_

namespace fuselage::ops {

// A transcendental function: a polynomial of about as many operations.
constexpr double kTranscendental = 20;
// Divide, round, clamp.
constexpr double kQuantizeOperations = 3;
// Subtract the zero point, multiply.
constexpr double kDequantizeOperations = 2;

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_COST_H_

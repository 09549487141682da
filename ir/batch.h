// The batch as an attribute.
#ifndef FUSELAGE_IR_BATCH_H_
#define FUSELAGE_IR_BATCH_H_

namespace fuselage::ir {

// An op's attribute, an integer: where it is above 0, the first dimension of the graph's inputs, which Graph::SetBatch
// sets (expand's).
inline constexpr char kBatchAttribute[] = "batch";

}  // namespace fuselage::ir

#endif  // FUSELAGE_IR_BATCH_H_

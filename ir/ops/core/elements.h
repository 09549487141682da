// Which element types an elementwise operator takes.
#ifndef FUSELAGE_IR_OPS_CORE_ELEMENTS_H_
#define FUSELAGE_IR_OPS_CORE_ELEMENTS_H_

#include "absl/status/status.h"
#include "ir/op.h"

namespace fuselage::ops {

enum class Elements { kFloats, kIntegers, kNumbers, kBool, kAny };

// Operand i holds such elements, and no codes.
absl::Status CheckElements(const ir::InferCall& call, int i, Elements elements);

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_ELEMENTS_H_

// Codes whose zero point is an operand beside them, as in ONNX's MatMulInteger and ConvInteger.
#ifndef FUSELAGE_IR_OPS_CORE_ZERO_POINTS_H_
#define FUSELAGE_IR_OPS_CORE_ZERO_POINTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ir/op.h"

namespace fuselage::ops {

// Operand `codes` is u8 or i8 without parameters; operand `zero_point`, which may be absent, has its element type and
// broadcasts to its shape.
absl::Status CheckZeroPoint(const ir::InferCall& call, int codes, int zero_point);

// codes - zero_point of a call that has passed the check.
std::vector<int64_t> LessZeroPoint(const ir::EvaluateCall& call, int codes, int zero_point);

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_ZERO_POINTS_H_

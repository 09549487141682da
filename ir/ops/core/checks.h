// Checks of type inference that ops share. Each error names the operand, what it is and what was wanted:
// "weight f32[4,3,3]: rank 3, wanted 4". The caller of inference names the node.
#ifndef FUSELAGE_IR_OPS_CORE_CHECKS_H_
#define FUSELAGE_IR_OPS_CORE_CHECKS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/op.h"

namespace fuselage::ops {

// An error about operand `i`; operands beyond the schema's list count to the variadic one.
absl::Status OperandError(const ir::InferCall& call, int i, absl::string_view problem);
// An error about an attribute: "stride=[0, 1]: wanted 2 values >= 1".
absl::Status AttributeError(const ir::OpCall& call, absl::string_view name, absl::string_view wanted);

// Rank in [min, max]; a missing max means min.
absl::Status CheckRank(const ir::InferCall& call, int i, int min, int max = -1);
absl::Status CheckMinRank(const ir::InferCall& call, int i, int min);
// A float element type.
absl::Status CheckFloat(const ir::InferCall& call, int i);
// No quantization parameters: codes mean something only to an op that knows their scale.
absl::Status CheckNoCodes(const ir::InferCall& call, int i);
// Codes only with per-tensor parameters: what an op that moves elements can keep.
absl::Status CheckPerTensor(const ir::InferCall& call, int i);
absl::Status CheckShape(const ir::InferCall& call, int i, const Shape& shape);
absl::Status CheckDType(const ir::InferCall& call, int i, DType dtype);
// A parameter of `dtype`, or one whose quantization parameters give it real values (see RealValues).
absl::Status CheckParameterDType(const ir::InferCall& call, int i, DType dtype);

// `count` values in [min, 2^31): small enough that products of two do not overflow.
absl::Status CheckInts(const ir::OpCall& call, absl::string_view name, int count, int64_t min);
absl::Status CheckOneOf(const ir::OpCall& call, absl::string_view name, const std::vector<std::string>& wanted);

// The axis that the attribute names, in [0, rank).
absl::StatusOr<int> AxisOf(const ir::OpCall& call, absl::string_view name, int rank);
// The axes of a list, each in [0, rank), none twice.
absl::StatusOr<std::vector<int>> AxesOf(const ir::OpCall& call, absl::string_view name, int rank);

// A row-major result; an error where its size overflows.
absl::StatusOr<ir::Type> ResultType(DType dtype, Shape shape, std::optional<QuantParams> quant = std::nullopt);

}  // namespace fuselage::ops

#endif  // FUSELAGE_IR_OPS_CORE_CHECKS_H_

#include "ir/ops/core/zero_points.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops {

absl::Status CheckZeroPoint(const ir::InferCall& call, int codes, int zero_point) {
  RETURN_IF_ERROR(CheckNoCodes(call, codes));
  const TensorType& type = call.tensor(codes);
  if (type.dtype != DType::kU8 && type.dtype != DType::kI8) return OperandError(call, codes, "wanted u8 or i8");
  if (!call.has(zero_point)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckNoCodes(call, zero_point));
  RETURN_IF_ERROR(CheckDType(call, zero_point, type.dtype));
  const absl::StatusOr<Shape> shape = BroadcastShapes(call.tensor(zero_point).shape, type.shape);
  if (!shape.ok() || *shape != type.shape) {
    return OperandError(call, zero_point, absl::StrCat("wanted what broadcasts to ", ToString(type.shape)));
  }
  return absl::OkStatus();
}

std::vector<int64_t> LessZeroPoint(const ir::EvaluateCall& call, int codes, int zero_point) {
  std::vector<int64_t> values = Integers(call.tensor(codes));
  if (!call.has(zero_point)) return values;
  const std::vector<int64_t> zeros = Integers(call.tensor(zero_point));
  const Shape& shape = call.tensor(codes).shape();
  ForEachOffset(shape, BroadcastStrides(call.tensor(zero_point).shape(), shape), 0,
                [&](int64_t i, int64_t offset) { values[i] -= zeros[offset]; });
  return values;
}

}  // namespace fuselage::ops

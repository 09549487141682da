#include "ir/ops/where/where.h"

#include <cstring>

#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::where {
namespace {

enum Operand { kCondition, kInput, kOther };

absl::StatusOr<ir::Type> InferWhere(const ir::InferCall& call) {
  for (int i = kCondition; i <= kOther; ++i) RETURN_IF_ERROR(CheckNoCodes(call, i));
  RETURN_IF_ERROR(CheckDType(call, kCondition, DType::kBool));
  const TensorType& input = call.tensor(kInput);
  RETURN_IF_ERROR(CheckDType(call, kOther, input.dtype));
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(input.shape, call.tensor(kOther).shape));
  ASSIGN_OR_RETURN(shape, BroadcastShapes(call.tensor(kCondition).shape, shape));
  return ResultType(input.dtype, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateWhere(const ir::EvaluateCall& call) {
  const TensorType& type = call.result();
  Tensor stretched[3];
  for (int i = kCondition; i <= kOther; ++i) {
    const Tensor& operand = call.tensor(i);
    const TensorType of{operand.dtype(), type.shape, std::nullopt, Layout::kRowMajor};
    stretched[i] = Gather(operand, of, BroadcastStrides(operand.shape(), type.shape));
  }
  const int64_t size = ByteSize(type.dtype);
  const bool* condition = stretched[kCondition].data<bool>();
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    if (condition[i]) continue;
    std::memcpy(static_cast<char*>(stretched[kInput].raw_data()) + i * size,
                static_cast<const char*>(stretched[kOther].raw_data()) + i * size, size);
  }
  return One(std::move(stretched[kInput]));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "where";
  schema.aliases = {"torch.where"};
  schema.operands = {{"condition"}, {"input"}, {"other"}};
  schema.elementwise = true;
  schema.infer = InferWhere;
  schema.evaluate = EvaluateWhere;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::where

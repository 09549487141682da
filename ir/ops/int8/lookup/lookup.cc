#include "ir/ops/int8/lookup/lookup.h"

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"

namespace fuselage::ops::int8::lookup {
namespace {

constexpr int64_t kBytes = 256;

absl::StatusOr<ir::Type> Infer(const ir::InferCall& call) {
  if (!call.tensor(0).quant || call.tensor(0).dtype != DType::kI8) RETURN_IF_ERROR(CheckDType(call, 0, DType::kU8));
  RETURN_IF_ERROR(CheckPerTensor(call, 0));
  RETURN_IF_ERROR(CheckNoCodes(call, 1));
  const TensorType &x = call.tensor(0), &table = call.tensor(1);
  const int64_t channels = x.rank() > 1 ? x.shape[1] : 1;
  if (table.shape != Shape{1, kBytes} && table.shape != Shape{channels, kBytes}) {
    return OperandError(call, 1, absl::StrCat("wanted [1,256] or [", channels, ",256]"));
  }
  ASSIGN_OR_RETURN(ir::Type result, OutputType(call, x.shape));
  RETURN_IF_ERROR(CheckDType(call, 1, result.tensor().dtype));
  return result;
}

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::EvaluateCall& call) {
  const Tensor &x = call.tensor(0), &table = call.tensor(1);
  int64_t inner = 1;  // Elements of a channel.
  for (int axis = 2; axis < x.type().rank(); ++axis) inner *= x.dim(axis);
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    result.Set(i, table.At(i / inner % table.dim(0) * kBytes + static_cast<const uint8_t*>(x.raw_data())[i]));
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "int8.lookup";
  schema.operands = {{"input"}, {"table", /*optional=*/false, /*parameter=*/true}};
  schema.attributes = OutputAttributes();
  schema.itemwise = true;
  schema.module_form = true;
  schema.infer = Infer;
  schema.evaluate = Evaluate;
  schema.operations_per_element = 1;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::lookup

#include "ir/ops/cat/cat.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::cat {
namespace {

absl::StatusOr<ir::Type> InferCat(const ir::InferCall& call) {
  const TensorType& first = call.tensor(0);
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", first.rank()));
  Shape shape = first.shape;
  shape[axis] = 0;
  for (int i = 0; i < call.size(); ++i) {
    const TensorType& input = call.tensor(i);
    RETURN_IF_ERROR(CheckDType(call, i, first.dtype));
    RETURN_IF_ERROR(CheckPerTensor(call, i));
    if (input.quant != first.quant) {
      return OperandError(call, i, absl::StrCat("wanted the quantization parameters of ", ToString(first)));
    }
    Shape expected = first.shape;
    if (input.rank() == first.rank()) expected[axis] = input.shape[axis];
    RETURN_IF_ERROR(CheckShape(call, i, expected));
    if (__builtin_add_overflow(shape[axis], input.shape[axis], &shape[axis])) {
      return OperandError(call, i, "the size of the result overflows 64 bits");
    }
  }
  return ResultType(first.dtype, std::move(shape), first.quant);
}

absl::StatusOr<std::vector<Tensor>> EvaluateCat(const ir::EvaluateCall& call) {
  Tensor result(call.result());
  ASSIGN_OR_RETURN(const int axis, AxisOf(call, "dim", result.rank()));
  int64_t outer = 1, inner = ByteSize(result.dtype());
  for (int i = 0; i < axis; ++i) outer *= result.dim(i);
  for (int i = axis + 1; i < result.rank(); ++i) inner *= result.dim(i);
  uint8_t* out = static_cast<uint8_t*>(result.raw_data());
  for (int64_t row = 0; row < outer; ++row) {
    for (int i = 0; i < call.size(); ++i) {
      const int64_t bytes = call.tensor(i).dim(axis) * inner;
      if (bytes == 0) continue;
      std::memcpy(out, static_cast<const uint8_t*>(call.tensor(i).raw_data()) + row * bytes, bytes);
      out += bytes;
    }
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "cat";
  schema.aliases = {"torch.cat", "torch.concat"};
  schema.operands = {{"inputs", /*optional=*/false, /*parameter=*/false, /*variadic=*/true}};
  schema.attributes = {{"dim", AttributeKind::kInt, 0}};
  schema.keeps_range = true;
  schema.homogeneous = true;
  schema.itemwise = true;
  schema.infer = InferCat;
  schema.evaluate = EvaluateCat;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::cat

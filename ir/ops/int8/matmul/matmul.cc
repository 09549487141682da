#include "ir/ops/int8/matmul/matmul.h"

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"
#include "ir/ops/matmul/matmul.h"

namespace fuselage::ops::int8::matmul {
namespace {

// Codes less their zero points are at most 255.
constexpr int64_t kMostDepth = ((int64_t{1} << 31) - 1) / (255 * 255);

absl::StatusOr<ir::Type> InferMatmul(const ir::InferCall& call) {
  for (int i = 0; i < 2; ++i) {
    RETURN_IF_ERROR(CheckMinRank(call, i, 1));
    RETURN_IF_ERROR(CheckCodes(call, i));
  }
  ASSIGN_OR_RETURN(Shape shape, ops::matmul::CheckMatmul(call));
  const int64_t depth = call.tensor(0).shape.back();
  if (depth > kMostDepth) {
    return OperandError(call, 0,
                        absl::StrCat("sums of ", depth, " products may overflow 32 bits, wanted at most ", kMostDepth));
  }
  return OutputType(call, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateMatmul(const ir::EvaluateCall& call) {
  const Tensor &a = call.tensor(0), &b = call.tensor(1);
  ASSIGN_OR_RETURN(const float step, Multiplier(a.type().quant->scale() * b.type().quant->scale(), 1,
                                                "the product of the operands' scales"));
  const std::vector<double> sums = ops::matmul::MultiplyReals(a.shape(), Centered(a), b.shape(), Centered(b));
  Tensor result(call.result());
  if (result.dtype() == DType::kF32) {
    for (size_t i = 0; i < sums.size(); ++i) result.data<float>()[i] = static_cast<float>(sums[i]) * step;
    return One(std::move(result));
  }
  ASSIGN_OR_RETURN(const float multiplier, Multiplier(step, result.type().quant->scale(), "the multiplier"));
  const Rounding round = RoundingOf(result.type());
  for (size_t i = 0; i < sums.size(); ++i) result.Set(i, round(static_cast<float>(sums[i]) * multiplier));
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema schema;
  schema.name = "int8.matmul";
  schema.quantized_form_of = "matmul";
  schema.operands = {{"input"}, {"other"}};
  schema.attributes = OutputAttributes();
  schema.module_form = true;
  schema.float_result = true;
  schema.infer = InferMatmul;
  schema.evaluate = EvaluateMatmul;
  registry.Register(std::move(schema));
}

}  // namespace fuselage::ops::int8::matmul

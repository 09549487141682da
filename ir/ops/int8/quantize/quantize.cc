#include "ir/ops/int8/quantize/quantize.h"

#include <cmath>

#include "ir/ops/core/checks.h"
#include "ir/ops/core/cost.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"

namespace fuselage::ops::int8::quantize {
namespace {

absl::StatusOr<ir::Type> InferQuantize(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckDType(call, 0, DType::kF32));
  return OutputType(call, call.tensor(0).shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateQuantize(const ir::EvaluateCall& call) {
  const float* x = call.tensor(0).data<float>();
  const float scale = call.result().quant->scale();
  const Rounding round = RoundingOf(call.result());
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const float v = x[i] / scale;
    result.Set(i, round(std::isnan(v) ? 0 : v));
  }
  return One(std::move(result));
}

absl::StatusOr<ir::Type> InferDequantize(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, 0));
  return ResultType(DType::kF32, call.tensor(0).shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateDequantize(const ir::EvaluateCall& call) {
  const float scale = call.tensor(0).type().quant->scale();
  const std::vector<double> x = Centered(call.tensor(0));
  Tensor result(call.result());
  for (size_t i = 0; i < x.size(); ++i) result.data<float>()[i] = static_cast<float>(x[i]) * scale;
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema quantize;
  quantize.name = "int8.quantize";
  quantize.operands = {{"input"}};
  quantize.attributes = OutputAttributes();
  quantize.itemwise = true;
  quantize.module_form = true;
  quantize.infer = InferQuantize;
  quantize.evaluate = EvaluateQuantize;
  quantize.operations_per_element = kQuantizeOperations;
  registry.Register(std::move(quantize));

  ir::OpSchema dequantize;
  dequantize.name = "int8.dequantize";
  dequantize.operands = {{"input"}};
  dequantize.itemwise = true;
  dequantize.module_form = true;
  dequantize.infer = InferDequantize;
  dequantize.evaluate = EvaluateDequantize;
  dequantize.operations_per_element = kDequantizeOperations;
  registry.Register(std::move(dequantize));
}

}  // namespace fuselage::ops::int8::quantize

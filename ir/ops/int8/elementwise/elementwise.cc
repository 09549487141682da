#include "ir/ops/int8/elementwise/elementwise.h"

#include <cmath>

#include "ir/base/activation.h"
#include "ir/ops/core/broadcast.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/values.h"
#include "ir/ops/int8/core/arithmetic.h"

namespace fuselage::ops::int8::elementwise {
namespace {

absl::StatusOr<ir::Type> InferAdd(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, 0));
  RETURN_IF_ERROR(CheckCodes(call, 1));
  ASSIGN_OR_RETURN(const Activation activation, ParseActivation(call.GetString("activation")));
  if (!activation.is_clamp()) return AttributeError(call, "activation", "a clamp");
  if (call.GetFloat("alpha") != 1) return AttributeError(call, "alpha", "1 on codes");
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(call.tensor(0).shape, call.tensor(1).shape));
  return OutputType(call, std::move(shape));
}

absl::StatusOr<std::vector<Tensor>> EvaluateAdd(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  const Tensor& other = call.tensor(1);
  const float scale = call.result().quant->scale();
  ASSIGN_OR_RETURN(const float m_a, Multiplier(input.type().quant->scale(), scale, "input's multiplier"));
  ASSIGN_OR_RETURN(const float m_b, Multiplier(other.type().quant->scale(), scale, "other's multiplier"));
  const Rounding round = RoundingOf(call.result(), ParseActivation(call.GetString("activation")).value());
  const std::vector<double> a = Centered(input), b = Centered(other);
  Tensor result(call.result());
  std::vector<float> products(result.num_elements());
  ForEachOffset(result.shape(), BroadcastStrides(input.shape(), result.shape()), 0,
                [&](int64_t i, int64_t offset) { products[i] = static_cast<float>(a[offset]) * m_a; });
  ForEachOffset(result.shape(), BroadcastStrides(other.shape(), result.shape()), 0, [&](int64_t i, int64_t offset) {
    result.Set(i, round(std::fma(static_cast<float>(b[offset]), m_b, products[i])));
  });
  return One(std::move(result));
}

absl::StatusOr<ir::Type> InferRelu(const ir::InferCall& call) {
  RETURN_IF_ERROR(CheckCodes(call, 0));
  return OutputType(call, call.tensor(0).shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateRelu(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(0);
  ASSIGN_OR_RETURN(const float multiplier,
                   Multiplier(input.type().quant->scale(), call.result().quant->scale(), "the multiplier"));
  const Rounding round = RoundingOf(call.result(), Activation::Relu());
  const std::vector<double> x = Centered(input);
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) result.Set(i, round(static_cast<float>(x[i]) * multiplier));
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  ir::OpSchema add;
  add.name = "int8.add";
  add.quantized_form_of = "add";
  add.operands = {{"input"}, {"other"}};
  add.attributes = OutputAttributes();
  add.attributes.push_back({"alpha", AttributeKind::kFloat, 1.0});
  add.attributes.push_back({"activation", AttributeKind::kString, "none"});
  add.module_form = true;
  add.elementwise = true;
  add.infer = InferAdd;
  add.evaluate = EvaluateAdd;
  registry.Register(std::move(add));

  ir::OpSchema relu;
  relu.name = "int8.relu";
  relu.quantized_form_of = "relu";
  relu.operands = {{"input"}};
  relu.attributes = OutputAttributes();
  relu.module_form = true;
  relu.elementwise = true;
  relu.infer = InferRelu;
  relu.evaluate = EvaluateRelu;
  registry.Register(std::move(relu));
}

}  // namespace fuselage::ops::int8::elementwise

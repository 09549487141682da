// Activation functions.
#include <limits>

#include "absl/status/status.h"
#include "frontend/onnx/converters.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::activations {
namespace {

// Bounds are attributes before opset 11, inputs from then on; computed ones are a maximum and a minimum.
absl::Status ConvertClip(Call& call) {
  double min = -std::numeric_limits<double>::infinity(), max = -min;
  if (call.opset() < 11) {
    if (call.num_operands() > 1) return absl::InvalidArgumentError("found bounds as inputs, wanted attributes");
    min = call.Float("min", min);
    max = call.Float("max", max);
    return call.Result("clamp", {call.operand(0)}, {{"min", min}, {"max", max}});
  }
  if (call.HasAttribute("min") || call.HasAttribute("max")) {
    return absl::InvalidArgumentError("found bounds as attributes, wanted inputs from opset 11 on");
  }
  const auto is_computed = [&](int i) { return call.has(i) && call.operand(i).constant == nullptr; };
  if (is_computed(1) || is_computed(2)) {
    if (!call.has(2)) return call.Result("maximum", {call.operand(0), call.operand(1)});
    Value low = call.operand(0);
    if (call.has(1)) {
      ASSIGN_OR_RETURN(low, call.EmitHelper("maximum", "maximum", {low, call.operand(1)}));
    }
    return call.Result("minimum", {low, call.operand(2)});
  }
  if (call.has(1)) {
    ASSIGN_OR_RETURN(min, call.ConstantScalar(1));
  }
  if (call.has(2)) {
    ASSIGN_OR_RETURN(max, call.ConstantScalar(2));
  }
  return call.Result("clamp", {call.operand(0)}, {{"min", min}, {"max", max}});
}

absl::Status ConvertLeakyRelu(Call& call) {
  return call.Result("leaky_relu", call.operands(), {{"negative_slope", call.Float("alpha", 0.01f)}});
}

absl::Status ConvertHardSigmoid(Call& call) {
  return call.Result("hardsigmoid", call.operands(),
                     {{"alpha", call.Float("alpha", 0.2f)}, {"beta", call.Float("beta", 0.5f)}});
}

// Elu, Celu
absl::Status ConvertElu(Call& call) {
  return call.Result(call.target(), call.operands(), {{"alpha", call.Float("alpha", 1)}});
}

absl::Status ConvertSelu(Call& call) {
  const double alpha = call.Float("alpha", 1.67326319217681884765625);
  return call.Result("selu", call.operands(),
                     {{"alpha", alpha}, {"gamma", call.Float("gamma", 1.05070102214813232421875)}});
}

absl::Status ConvertThresholdedRelu(Call& call) {
  return call.Result("threshold", call.operands(), {{"threshold", call.Float("alpha", 1)}});
}

// x * sigmoid(alpha * x)
absl::Status ConvertSwish(Call& call) {
  const Value& x = call.operand(0);
  const double alpha = call.Float("alpha", 1);
  if (alpha == 1) return call.Result("silu", {x});
  ASSIGN_OR_RETURN(const Value factor, call.Scalar("alpha", x.type().dtype, alpha));
  ASSIGN_OR_RETURN(const Value scaled, call.EmitHelper("scaled", "mul", {x, factor}));
  ASSIGN_OR_RETURN(const Value gate, call.EmitHelper("gate", "sigmoid", {scaled}));
  return call.Result("mul", {x, gate});
}

absl::Status ConvertGelu(Call& call) {
  return call.Result("gelu", call.operands(), {{"approximate", call.String("approximate", "none")}});
}

// x + bias below -lambd, x - bias above lambd, 0 in between.
absl::Status ConvertShrink(Call& call) {
  const Value& x = call.operand(0);
  const DType dtype = call.type(0).dtype;
  const double lambd = call.Float("lambd", 0.5), bias = call.Float("bias", 0);
  ASSIGN_OR_RETURN(const Value low, call.Scalar("low", dtype, -lambd));
  ASSIGN_OR_RETURN(const Value high, call.Scalar("high", dtype, lambd));
  ASSIGN_OR_RETURN(const Value shift, call.Scalar("bias", dtype, bias));
  ASSIGN_OR_RETURN(const Value zero, call.Scalar("zero", dtype, 0));
  ASSIGN_OR_RETURN(const Value is_below, call.EmitHelper("is_below", "lt", {x, low}));
  ASSIGN_OR_RETURN(const Value is_above, call.EmitHelper("is_above", "gt", {x, high}));
  ASSIGN_OR_RETURN(const Value raised, call.EmitHelper("raised", "add", {x, shift}));
  ASSIGN_OR_RETURN(const Value lowered, call.EmitHelper("lowered", "sub", {x, shift}));
  ASSIGN_OR_RETURN(const Value above, call.EmitHelper("above", "where", {is_above, lowered, zero}));
  return call.Result("where", {is_below, raised, above});
}

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Celu", 12, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertElu},
      {"Clip", 6, {1, 3}, {1, 1}, "max=FLOAT min=FLOAT", ConvertClip},
      {"Elu", 6, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertElu},
      {"Gelu", 20, {1, 1}, {1, 1}, "approximate=STRING", ConvertGelu},
      {"HardSigmoid", 6, {1, 1}, {1, 1}, "alpha=FLOAT beta=FLOAT", ConvertHardSigmoid},
      {"HardSwish", 14, {1, 1}, {1, 1}, "", ConvertSame},
      {"LeakyRelu", 6, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertLeakyRelu},
      {"Mish", 18, {1, 1}, {1, 1}, "", ConvertSame},
      {"Relu", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Selu", 6, {1, 1}, {1, 1}, "alpha=FLOAT gamma=FLOAT", ConvertSelu},
      {"Shrink", 9, {1, 1}, {1, 1}, "bias=FLOAT lambd=FLOAT", ConvertShrink},
      {"Sigmoid", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Softplus", 1, {1, 1}, {1, 1}, "", ConvertSame},
      {"Softsign", 1, {1, 1}, {1, 1}, "", ConvertSame},
      {"Swish", 24, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertSwish},
      {"ThresholdedRelu", 10, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertThresholdedRelu},
  });
}

}  // namespace fuselage::onnx::converters::activations

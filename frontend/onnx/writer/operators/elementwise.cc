// Operators that compute each element by itself.
#include "frontend/onnx/writer/activation.h"
#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer::operators::elementwise {
namespace {

void HardSigmoid(const Call& c, double alpha, double beta, const std::string& result) {
  c.to.Emit("HardSigmoid", {c.in[0]}, result)
      .Float("alpha", static_cast<float>(alpha))
      .Float("beta", static_cast<float>(beta));
}

// Relu takes integers from opset 14 on.
absl::Status WriteRelu(const Call& c) {
  if (!IsFloat(c.dtype())) c.to.Require(14);
  return WriteSame(c);
}

absl::Status WriteAdd(const Call& c) {
  const double alpha = c.op.GetFloat("alpha");
  std::string other = c.in[1];
  if (alpha != 1) {
    other = c.Suffixed("other");
    c.to.Emit("Mul", {c.in[1], c.Number("alpha", alpha, c.dtype())}, other);
  }
  return BeforeActivation(c, [&](const std::string& sum) { c.to.Emit("Add", {c.in[0], other}, sum); });
}

absl::Status WriteClamp(const Call& c) { return Clip(c, c.in[0], c.op.GetFloat("min"), c.op.GetFloat("max")); }

absl::Status WriteRelu6(const Call& c) { return Clip(c, c.in[0], 0, 6); }

absl::Status WriteLeakyRelu(const Call& c) {
  c.Emit("LeakyRelu", c.in).Float("alpha", static_cast<float>(c.op.GetFloat("negative_slope")));
  return absl::OkStatus();
}

absl::Status WriteHardSigmoid(const Call& c) {
  HardSigmoid(c, c.op.GetFloat("alpha"), c.op.GetFloat("beta"), c.name);
  return absl::OkStatus();
}

absl::Status WriteHardSwish(const Call& c) {
  HardSigmoid(c, 1.0 / 6, 0.5, c.Suffixed("gate"));
  c.Emit("Mul", {c.in[0], c.Suffixed("gate")});
  return absl::OkStatus();
}

absl::Status WriteSilu(const Call& c) {
  c.to.Emit("Sigmoid", c.in, c.Suffixed("gate"));
  c.Emit("Mul", {c.in[0], c.Suffixed("gate")});
  return absl::OkStatus();
}

absl::Status WriteGelu(const Call& c) {
  c.to.Require(20);
  c.Emit("Gelu", c.in).String("approximate", c.op.GetString("approximate"));
  return absl::OkStatus();
}

absl::Status WriteDropout(const Call& c) {
  if (c.op.GetBool("training")) return c.Declined(" in training");
  return WriteSame(c);
}

absl::Status WriteTo(const Call& c) {
  c.Emit("Cast", c.in).Int("to", ElementType(c.dtype()));
  return absl::OkStatus();
}

// elu, celu, selu
absl::Status WriteElu(const Call& c) {
  ModelBuilder& node = c.Emit(c.onnx, c.in).Float("alpha", static_cast<float>(c.op.GetFloat("alpha")));
  if (c.op.schema().FindAttributeOrNull("gamma") != nullptr) {
    node.Float("gamma", static_cast<float>(c.op.GetFloat("gamma")));
  }
  return absl::OkStatus();
}

absl::Status WriteThreshold(const Call& c) {
  if (c.op.GetFloat("value") != 0) return c.Declined(" with a value other than 0");
  c.Emit(c.onnx, c.in).Float("alpha", static_cast<float>(c.op.GetFloat("threshold")));
  return absl::OkStatus();
}

// The same, from opset 18 on.
absl::Status WriteSameOf18(const Call& c) {
  c.to.Require(18);
  return WriteSame(c);
}

absl::Status WriteNe(const Call& c) {
  c.to.Emit("Equal", c.in, c.Suffixed("equal"));
  c.Emit("Not", {c.Suffixed("equal")});
  return absl::OkStatus();
}

absl::Status WriteIsInf(const Call& c) {
  c.Emit(c.onnx, c.in)
      .Int("detect_negative", c.op.GetBool("detect_negative"))
      .Int("detect_positive", c.op.GetBool("detect_positive"));
  return absl::OkStatus();
}

// fmod, remainder
absl::Status WriteMod(const Call& c) {
  const bool fmod = c.op.schema().name == "fmod";
  if (!fmod && IsFloat(c.dtype())) return c.Declined(" of floats");
  c.Emit(c.onnx, c.in).Int("fmod", fmod);
  return absl::OkStatus();
}

// bitwise_left_shift, bitwise_right_shift
absl::Status WriteShift(const Call& c) {
  if (c.dtype() != DType::kU8) return c.Declined(" of signed integers");
  c.Emit(c.onnx, c.in).String("direction", c.op.schema().name == "bitwise_left_shift" ? "LEFT" : "RIGHT");
  return absl::OkStatus();
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"abs", WriteSame, "Abs"},
      {"acos", WriteSame, "Acos"},
      {"acosh", WriteSame, "Acosh"},
      {"add", WriteAdd, "Add"},
      {"asin", WriteSame, "Asin"},
      {"asinh", WriteSame, "Asinh"},
      {"atan", WriteSame, "Atan"},
      {"atanh", WriteSame, "Atanh"},
      {"bitwise_and", WriteSameOf18, "BitwiseAnd"},
      {"bitwise_left_shift", WriteShift, "BitShift"},
      {"bitwise_not", WriteSameOf18, "BitwiseNot"},
      {"bitwise_or", WriteSameOf18, "BitwiseOr"},
      {"bitwise_right_shift", WriteShift, "BitShift"},
      {"bitwise_xor", WriteSameOf18, "BitwiseXor"},
      {"ceil", WriteSame, "Ceil"},
      {"celu", WriteElu, "Celu"},
      {"clamp", WriteClamp, "Clip"},
      {"cos", WriteSame, "Cos"},
      {"cosh", WriteSame, "Cosh"},
      {"div", WriteSame, "Div"},
      {"dropout", WriteDropout, "Identity"},
      {"elu", WriteElu, "Elu"},
      {"eq", WriteSame, "Equal"},
      {"erf", WriteSame, "Erf"},
      {"exp", WriteSame, "Exp"},
      {"floor", WriteSame, "Floor"},
      {"fmod", WriteMod, "Mod"},
      {"ge", WriteSame, "GreaterOrEqual"},
      {"gelu", WriteGelu, "Gelu"},
      {"gt", WriteSame, "Greater"},
      {"hardsigmoid", WriteHardSigmoid, "HardSigmoid"},
      {"hardswish", WriteHardSwish, "HardSigmoid"},
      {"identity", WriteSame, "Identity"},
      {"isinf", WriteIsInf, "IsInf"},
      {"isnan", WriteSame, "IsNaN"},
      {"le", WriteSame, "LessOrEqual"},
      {"leaky_relu", WriteLeakyRelu, "LeakyRelu"},
      {"log", WriteSame, "Log"},
      {"logical_and", WriteSame, "And"},
      {"logical_not", WriteSame, "Not"},
      {"logical_or", WriteSame, "Or"},
      {"logical_xor", WriteSame, "Xor"},
      {"lt", WriteSame, "Less"},
      {"maximum", WriteSame, "Max"},
      {"minimum", WriteSame, "Min"},
      {"mish", WriteSameOf18, "Mish"},
      {"mul", WriteSame, "Mul"},
      {"ne", WriteNe, "Equal"},
      {"neg", WriteSame, "Neg"},
      {"pow", WriteSame, "Pow"},
      {"prelu", WriteSame, "PRelu"},
      {"reciprocal", WriteSame, "Reciprocal"},
      {"relu", WriteRelu, "Relu"},
      {"relu6", WriteRelu6, "Clip"},
      {"remainder", WriteMod, "Mod"},
      {"round", WriteSame, "Round"},
      {"selu", WriteElu, "Selu"},
      {"sigmoid", WriteSame, "Sigmoid"},
      {"sign", WriteSame, "Sign"},
      {"silu", WriteSilu, "Sigmoid"},
      {"sin", WriteSame, "Sin"},
      {"sinh", WriteSame, "Sinh"},
      {"softplus", WriteSame, "Softplus"},
      {"softsign", WriteSame, "Softsign"},
      {"sqrt", WriteSame, "Sqrt"},
      {"sub", WriteSame, "Sub"},
      {"tan", WriteSame, "Tan"},
      {"tanh", WriteSame, "Tanh"},
      {"threshold", WriteThreshold, "ThresholdedRelu"},
      {"to", WriteTo, "Cast"},
      {"where", WriteSame, "Where"},
  });
}

}  // namespace fuselage::onnx::writer::operators::elementwise

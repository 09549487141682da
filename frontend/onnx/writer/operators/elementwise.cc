// Operators that compute each element by itself; activation functions are in activations.cc.
#include "frontend/onnx/writer/activation.h"
#include "frontend/onnx/writer/operators.h"

namespace fuselage::onnx::writer::operators::elementwise {
namespace {

absl::Status WriteAdd(const Call& c) {
  const double alpha = c.op.GetFloat("alpha");
  std::string other = c.in[1];
  if (alpha != 1) {
    other = c.Suffixed("other");
    c.to.Emit("Mul", {c.in[1], c.Number("alpha", alpha, c.dtype())}, other);
  }
  return BeforeActivation(c, [&](const std::string& sum) { c.to.Emit("Add", {c.in[0], other}, sum); });
}

absl::Status WriteDropout(const Call& c) {
  if (c.op.GetBool("training")) return c.Declined(" in training");
  return WriteSame(c);
}

absl::Status WriteTo(const Call& c) {
  c.Emit("Cast", c.in).Int("to", ElementType(c.dtype()));
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
      {"cos", WriteSame, "Cos"},
      {"cosh", WriteSame, "Cosh"},
      {"div", WriteSame, "Div"},
      {"dropout", WriteDropout, "Identity"},
      {"eq", WriteSame, "Equal"},
      {"erf", WriteSame, "Erf"},
      {"exp", WriteSame, "Exp"},
      {"floor", WriteSame, "Floor"},
      {"fmod", WriteMod, "Mod"},
      {"ge", WriteSame, "GreaterOrEqual"},
      {"gt", WriteSame, "Greater"},
      {"identity", WriteSame, "Identity"},
      {"isinf", WriteIsInf, "IsInf"},
      {"isnan", WriteSame, "IsNaN"},
      {"le", WriteSame, "LessOrEqual"},
      {"log", WriteSame, "Log"},
      {"logical_and", WriteSame, "And"},
      {"logical_not", WriteSame, "Not"},
      {"logical_or", WriteSame, "Or"},
      {"logical_xor", WriteSame, "Xor"},
      {"lt", WriteSame, "Less"},
      {"maximum", WriteSame, "Max"},
      {"minimum", WriteSame, "Min"},
      {"mul", WriteSame, "Mul"},
      {"ne", WriteNe, "Equal"},
      {"neg", WriteSame, "Neg"},
      {"pow", WriteSame, "Pow"},
      {"prelu", WriteSame, "PRelu"},
      {"reciprocal", WriteSame, "Reciprocal"},
      {"remainder", WriteMod, "Mod"},
      {"round", WriteSame, "Round"},
      {"sign", WriteSame, "Sign"},
      {"sin", WriteSame, "Sin"},
      {"sinh", WriteSame, "Sinh"},
      {"sqrt", WriteSame, "Sqrt"},
      {"sub", WriteSame, "Sub"},
      {"tan", WriteSame, "Tan"},
      {"tanh", WriteSame, "Tanh"},
      {"to", WriteTo, "Cast"},
      {"where", WriteSame, "Where"},
  });
}

}  // namespace fuselage::onnx::writer::operators::elementwise

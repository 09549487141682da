// Operators that compute each element of the result from one element of each operand.
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::elementwise {
namespace {

absl::StatusOr<Value> CastHelper(Call& call, absl::string_view suffix, const Value& value, DType dtype) {
  if (value.type().dtype == dtype) return value;
  return call.EmitHelper(suffix, "to", {value}, {{"dtype", dtype}});
}

// Operand 1 with axes of size 1 behind, so that its first one is operand 0's `axis`.
absl::StatusOr<Value> AlignedAt(Call& call, int64_t axis) {
  const Value& other = call.operand(1);
  const int64_t behind = call.rank(0) - axis - other.type().rank();
  if (axis < 0 || behind < 0) {
    return absl::InvalidArgumentError(absl::StrCat("found ", ToString(other.type()), " at axis ", axis, " of ",
                                                   ToString(call.type(0)), ", wanted it to fit"));
  }
  if (behind == 0 || other.type().rank() == 0) return other;
  Shape shape = other.shape();
  shape.insert(shape.end(), behind, 1);
  return call.EmitHelper("aligned", "reshape", {other}, {{"shape", shape}, {"allow_zero", true}});
}

// Operand 1 as NumPy broadcasts it. Before opset 7 attributes say how: its axes are the last ones of operand 0, or
// those from `axis` on.
absl::StatusOr<Value> BroadcastOperand(Call& call) {
  const bool stated = call.HasAttribute("axis") || call.HasAttribute("broadcast");
  if (call.opset() >= 7 && stated) {
    return absl::InvalidArgumentError("found attributes 'axis' or 'broadcast', wanted none from opset 7 on");
  }
  if (!call.HasAttribute("axis")) return call.operand(1);
  const int64_t axis = call.Int("axis", 0);
  return AlignedAt(call, axis < 0 ? axis + call.rank(0) : axis);
}

// Tied weights stay one parameter.
absl::Status ConvertIdentity(Call& call) {
  if (call.operand(0).constant == nullptr) return ConvertSame(call);
  call.Set(0, call.operand(0));
  return absl::OkStatus();
}

// Those that broadcast by attributes before opset 7.
absl::Status ConvertBinary(Call& call) {
  ASSIGN_OR_RETURN(const Value other, BroadcastOperand(call));
  return call.Result(call.target(), {call.operand(0), other});
}

// A slope for each channel before opset 7, one that broadcasts from then on.
absl::Status ConvertPRelu(Call& call) {
  Value slope = call.operand(1);
  if (call.opset() < 7 && call.rank(1) == 1 && call.rank(0) > 1) {
    ASSIGN_OR_RETURN(slope, AlignedAt(call, 1));
  }
  return call.Result("prelu", {call.operand(0), slope});
}

// A chain of binary calls; the mean then divides by their number.
absl::Status ConvertNary(Call& call) {
  const std::string& target = call.target();
  const int n = call.num_operands();
  for (int i = 0; i < n; ++i) {
    if (!call.has(i)) return absl::InvalidArgumentError(absl::StrCat("found input ", i, " absent, wanted it"));
  }
  if (n == 1) return call.Result("identity", call.operands());
  const bool mean = call.operator_name() == "Mean";
  Value chain = call.operand(0);
  for (int i = 1; i < n; ++i) {
    if (i + 1 == n && !mean) return call.Result(target, {chain, call.operand(i)});
    ASSIGN_OR_RETURN(chain, call.EmitHelper(absl::StrCat(target, i), target, {chain, call.operand(i)}));
  }
  ASSIGN_OR_RETURN(const Value count, call.Scalar("count", chain.type().dtype, n));
  return call.Result("div", {chain, count});
}

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

absl::Status ConvertIsInf(Call& call) {
  ASSIGN_OR_RETURN(const bool negative, call.Flag("detect_negative", true));
  ASSIGN_OR_RETURN(const bool positive, call.Flag("detect_positive", true));
  return call.Result("isinf", call.operands(), {{"detect_negative", negative}, {"detect_positive", positive}});
}

// The exponent's element type is its own, the result's the base's. Squares and roots are what they are.
absl::Status ConvertPow(Call& call) {
  ASSIGN_OR_RETURN(const Value other, BroadcastOperand(call));
  const DType base = call.type(0).dtype, exponent = other.type().dtype;
  const Tensor* constant = other.TensorOrNull();
  if (IsFloat(base) && constant != nullptr && constant->num_elements() == 1 && constant->rank() <= call.rank(0)) {
    const Value& x = call.operand(0);
    if (constant->At(0) == 2) return call.Result("mul", {x, x});
    if (constant->At(0) == 0.5) return call.Result("sqrt", {x});
    if (constant->At(0) == -1) return call.Result("reciprocal", {x});
  }
  if (IsFloat(base) || !IsFloat(exponent)) {
    ASSIGN_OR_RETURN(const Value power, CastHelper(call, "exponent", other, base));
    return call.Result("pow", {call.operand(0), power});
  }
  ASSIGN_OR_RETURN(const Value x, CastHelper(call, "base", call.operand(0), DType::kF64));
  ASSIGN_OR_RETURN(const Value y, CastHelper(call, "exponent", other, DType::kF64));
  ASSIGN_OR_RETURN(const Value power, call.EmitHelper("power", "pow", {x, y}));
  return call.Result("to", {power}, {{"dtype", base}});
}

absl::Status ConvertMod(Call& call) {
  ASSIGN_OR_RETURN(const bool fmod, call.Flag("fmod", false));
  if (!fmod && IsFloat(call.type(0).dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("found fmod = 0 on ", ToString(call.type(0)), ", wanted integers or fmod = 1"));
  }
  return call.Result(fmod ? "fmod" : "remainder", call.operands());
}

absl::Status ConvertBitShift(Call& call) {
  const std::string direction = call.String("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute 'direction': found ", Quote(direction), ", wanted LEFT or RIGHT"));
  }
  return call.Result(direction == "LEFT" ? "bitwise_left_shift" : "bitwise_right_shift", call.operands());
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

constexpr char kBroadcast[] = "axis=INT broadcast=INT";

}  // namespace

void Register(Converters& converters) {
  converters.Add({
      {"Abs", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Acos", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Acosh", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Add", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
      {"And", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "logical_and"},
      {"Asin", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Asinh", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Atan", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Atanh", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"BitShift", 11, {2, 2}, {1, 1}, "direction=STRING", ConvertBitShift},
      {"BitwiseAnd", 18, {2, 2}, {1, 1}, "", ConvertSame, "bitwise_and"},
      {"BitwiseNot", 18, {1, 1}, {1, 1}, "", ConvertSame, "bitwise_not"},
      {"BitwiseOr", 18, {2, 2}, {1, 1}, "", ConvertSame, "bitwise_or"},
      {"BitwiseXor", 18, {2, 2}, {1, 1}, "", ConvertSame, "bitwise_xor"},
      {"Ceil", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Celu", 12, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertElu},
      {"Clip", 6, {1, 3}, {1, 1}, "max=FLOAT min=FLOAT", ConvertClip},
      {"Cos", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Cosh", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Div", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
      {"Elu", 6, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertElu},
      {"Equal", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "eq"},
      {"Erf", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Exp", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Floor", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Gelu", 20, {1, 1}, {1, 1}, "approximate=STRING", ConvertGelu},
      {"Greater", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "gt"},
      {"GreaterOrEqual", 12, {2, 2}, {1, 1}, "", ConvertSame, "ge"},
      {"HardSigmoid", 6, {1, 1}, {1, 1}, "alpha=FLOAT beta=FLOAT", ConvertHardSigmoid},
      {"HardSwish", 14, {1, 1}, {1, 1}, "", ConvertSame},
      {"Identity", 1, {1, 1}, {1, 1}, "", ConvertIdentity},
      {"IsInf", 10, {1, 1}, {1, 1}, "detect_negative=INT detect_positive=INT", ConvertIsInf},
      {"IsNaN", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"LeakyRelu", 6, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertLeakyRelu},
      {"Less", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "lt"},
      {"LessOrEqual", 12, {2, 2}, {1, 1}, "", ConvertSame, "le"},
      {"Log", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Max", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "maximum"},
      {"Mean", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "add"},
      {"Min", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "minimum"},
      {"Mish", 18, {1, 1}, {1, 1}, "", ConvertSame},
      {"Mod", 10, {2, 2}, {1, 1}, "fmod=INT", ConvertMod},
      {"Mul", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
      {"Neg", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Not", 1, {1, 1}, {1, 1}, "", ConvertSame, "logical_not"},
      {"Or", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "logical_or"},
      {"Pow", 1, {2, 2}, {1, 1}, kBroadcast, ConvertPow},
      {"PRelu", 6, {2, 2}, {1, 1}, "", ConvertPRelu},
      {"Reciprocal", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Relu", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Round", 11, {1, 1}, {1, 1}, "", ConvertSame},
      {"Selu", 6, {1, 1}, {1, 1}, "alpha=FLOAT gamma=FLOAT", ConvertSelu},
      {"Shrink", 9, {1, 1}, {1, 1}, "bias=FLOAT lambd=FLOAT", ConvertShrink},
      {"Sigmoid", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sign", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sin", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sinh", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Softplus", 1, {1, 1}, {1, 1}, "", ConvertSame},
      {"Softsign", 1, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sqrt", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sub", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
      {"Sum", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "add"},
      {"Swish", 24, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertSwish},
      {"Tan", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Tanh", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"ThresholdedRelu", 10, {1, 1}, {1, 1}, "alpha=FLOAT", ConvertThresholdedRelu},
      {"Where", 9, {3, 3}, {1, 1}, "", ConvertSame},
      {"Xor", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "logical_xor"},
  });
}

}  // namespace fuselage::onnx::converters::elementwise

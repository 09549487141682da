// Operators that compute each element of the result from one element of each operand; activation functions are in
// activations.cc.
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
      {"Cos", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Cosh", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Div", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
      {"Equal", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "eq"},
      {"Erf", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Exp", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Floor", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Greater", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "gt"},
      {"GreaterOrEqual", 12, {2, 2}, {1, 1}, "", ConvertSame, "ge"},
      {"Identity", 1, {1, 1}, {1, 1}, "", ConvertIdentity},
      {"IsInf", 10, {1, 1}, {1, 1}, "detect_negative=INT detect_positive=INT", ConvertIsInf},
      {"IsNaN", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Less", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "lt"},
      {"LessOrEqual", 12, {2, 2}, {1, 1}, "", ConvertSame, "le"},
      {"Log", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Max", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "maximum"},
      {"Mean", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "add"},
      {"Min", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "minimum"},
      {"Mod", 10, {2, 2}, {1, 1}, "fmod=INT", ConvertMod},
      {"Mul", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
      {"Neg", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Not", 1, {1, 1}, {1, 1}, "", ConvertSame, "logical_not"},
      {"Or", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "logical_or"},
      {"Pow", 1, {2, 2}, {1, 1}, kBroadcast, ConvertPow},
      {"PRelu", 6, {2, 2}, {1, 1}, "", ConvertPRelu},
      {"Reciprocal", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Round", 11, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sign", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sin", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sinh", 9, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sqrt", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Sub", 6, {2, 2}, {1, 1}, kBroadcast, ConvertBinary},
      {"Sum", 6, {1, kAnyNumber}, {1, 1}, "", ConvertNary, "add"},
      {"Tan", 7, {1, 1}, {1, 1}, "", ConvertSame},
      {"Tanh", 6, {1, 1}, {1, 1}, "", ConvertSame},
      {"Where", 9, {3, 3}, {1, 1}, "", ConvertSame},
      {"Xor", 1, {2, 2}, {1, 1}, kBroadcast, ConvertBinary, "logical_xor"},
  });
}

}  // namespace fuselage::onnx::converters::elementwise

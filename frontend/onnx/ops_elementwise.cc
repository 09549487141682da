// Operators that compute each element of the result from one element of each operand.
#include <algorithm>
#include <iterator>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

// Operators whose IR op is called otherwise: all others have the operator's name in lower case.
constexpr struct {
  absl::string_view name, target;
} kTargets[] = {
    {"And", "logical_and"},
    {"BitwiseAnd", "bitwise_and"},
    {"BitwiseNot", "bitwise_not"},
    {"BitwiseOr", "bitwise_or"},
    {"BitwiseXor", "bitwise_xor"},
    {"Equal", "eq"},
    {"GlobalAveragePool", "global_avg_pool"},
    {"Greater", "gt"},
    {"GreaterOrEqual", "ge"},
    {"Less", "lt"},
    {"LessOrEqual", "le"},
    {"Max", "maximum"},
    {"Mean", "add"},
    {"Min", "minimum"},
    {"Not", "logical_not"},
    {"Or", "logical_or"},
    {"Sum", "add"},
    {"Xor", "logical_xor"},
};

std::string TargetOf(const Call& call) {
  const auto it = std::find_if(std::begin(kTargets), std::end(kTargets),
                               [&](const auto& target) { return target.name == call.operator_name(); });
  return it == std::end(kTargets) ? absl::AsciiStrToLower(call.operator_name()) : std::string(it->target);
}

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

}  // namespace

absl::Status ConvertElementwise(Call& call) {
  if (call.operator_name() == "Identity" && call.operand(0).constant != nullptr) {
    call.Set(0, call.operand(0));  // Tied weights stay one parameter.
    return absl::OkStatus();
  }
  return call.Result(TargetOf(call), call.operands());
}

absl::Status ConvertBinary(Call& call) {
  ASSIGN_OR_RETURN(const Value other, BroadcastOperand(call));
  return call.Result(TargetOf(call), {call.operand(0), other});
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
  const std::string target = TargetOf(call);
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
  return call.Result(TargetOf(call), call.operands(), {{"alpha", call.Float("alpha", 1)}});
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

}  // namespace fuselage::onnx

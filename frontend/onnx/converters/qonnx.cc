// Quantizers of networks that were trained with them (Brevitas, QKeras, HAWQ; what FINN and hls4ml read): their result
// is in floats, of which each is a code's value. Where a type of ours has these codes, they become a quantize and a
// dequantize, and constants codes, which `lower` takes into its kernels; elsewhere, arithmetic on floats.
//
// github.com/fastmachinelearning/qonnx, docs/qonnx-custom-ops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/quant.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::qonnx {
namespace {

struct Range {
  double lowest, highest;
};

absl::StatusOr<int> ReadBits(const Call& call, int i) {
  ASSIGN_OR_RETURN(const double bits, call.ConstantScalar(i));
  if (bits >= 1 && bits <= 32 && bits == std::floor(bits)) return static_cast<int>(bits);
  return absl::UnimplementedError(
      absl::StrCat("input ", i, ": found a width of ", bits, " bits, wanted a whole number of 1 to 32"));
}

// Which codes there are. Without the lowest, -128 of eight bits, where `narrow`, or without the highest, 255. One bit
// with a sign is that alone.
absl::StatusOr<Range> CodesOf(const Call& call, int bits) {
  ASSIGN_OR_RETURN(const bool is_signed, call.Flag("signed", true));
  ASSIGN_OR_RETURN(const bool narrow, call.Flag("narrow", false));
  if (is_signed && bits == 1) return Range{-1, 1};
  const double count = std::exp2(bits);
  if (!is_signed) return Range{0, count - (narrow ? 2 : 1)};
  return Range{narrow - count / 2, count / 2 - 1};
}

// The smallest type with these codes that kernels take, and its own range.
struct CodeType {
  DType dtype;
  Range range;
};
std::optional<CodeType> TypeOf(Range codes) {
  for (const CodeType& type :
       {CodeType{DType::kU8, {0, 255}}, CodeType{DType::kI8, {-128, 127}}, CodeType{DType::kI16, {-32768, 32767}}}) {
    if (type.range.lowest <= codes.lowest && codes.highest <= type.range.highest) return type;
  }
  return std::nullopt;
}

// The parameters of codes of that type for `x`, where its scales and zero points are constants that lie along one axis
// at most and that a type can have.
std::optional<QuantParams> ParamsOf(const Value& x, const Value& scale, const Value& zero_point, DType dtype) {
  const Tensor *scales = scale.TensorOrNull(), *zero_points = zero_point.TensorOrNull();
  if (scales == nullptr || zero_points == nullptr || scales->dtype() != DType::kF32) return std::nullopt;
  const int64_t n = scales->num_elements();
  if (zero_points->num_elements() != 1 && zero_points->shape() != scales->shape()) return std::nullopt;
  const int moved = x.type().rank() - scales->type().rank();
  QuantParams params;
  params.axis = QuantParams::kPerTensor;
  for (int axis = 0; n > 1 && axis < scales->type().rank(); ++axis) {
    if (scales->dim(axis) == n) params.axis = axis + moved;
  }
  if (n == 0 || moved < 0 || (n > 1 && params.axis < 0)) return std::nullopt;
  for (int64_t i = 0; i < n; ++i) {
    const double zero = zero_points->At(zero_points->num_elements() == 1 ? 0 : i);
    if (zero != std::floor(zero) || std::abs(zero) > 65536) return std::nullopt;
    params.scales.push_back(static_cast<float>(scales->At(i)));
    params.zero_points.push_back(static_cast<int32_t>(zero));
  }
  if (!CheckQuantParams(params, dtype, x.shape()).ok()) return std::nullopt;
  return params;
}

std::string RoundingOf(const Call& call, absl::string_view otherwise) {
  return absl::AsciiStrToUpper(call.String("rounding_mode", otherwise));
}
bool IsHalfEven(absl::string_view mode) { return mode == "ROUND" || mode == "HALF_EVEN"; }

absl::StatusOr<Value> Round(Call& call, const std::string& suffix, const Value& x, const std::string& mode) {
  const auto emit = [&](absl::string_view op, const std::vector<Value>& operands) {
    return call.EmitHelper(absl::StrCat(suffix, "_", op), op, operands);
  };
  if (IsHalfEven(mode)) return emit("round", {x});
  if (mode == "CEIL") return emit("ceil", {x});
  if (mode == "FLOOR") return emit("floor", {x});
  const bool half_up = mode == "HALF_UP", half_down = mode == "HALF_DOWN";
  if (mode != "UP" && mode != "DOWN" && !half_up && !half_down) {
    return absl::UnimplementedError(
        absl::StrCat("attribute 'rounding_mode': found '", mode,
                     "', wanted ROUND, HALF_EVEN, CEIL, FLOOR, UP, DOWN, HALF_UP or HALF_DOWN"));
  }
  // Of magnitudes.
  ASSIGN_OR_RETURN(Value magnitude, emit("abs", {x}));
  if (half_up || half_down) {
    ASSIGN_OR_RETURN(const Value half, call.Scalar(absl::StrCat(suffix, "_half"), DType::kF32, half_up ? 0.5 : -0.5));
    ASSIGN_OR_RETURN(magnitude, emit("add", {magnitude, half}));
  }
  ASSIGN_OR_RETURN(magnitude, emit(mode == "UP" || half_down ? "ceil" : "floor", {magnitude}));
  ASSIGN_OR_RETURN(const Value sign, emit("sign", {x}));
  return emit("mul", {magnitude, sign});
}

// x / scale + zero_point
absl::StatusOr<Value> Scaled(Call& call, const Value& x, const Value& scale, const Value& zero_point) {
  ASSIGN_OR_RETURN(const Value quotient, call.EmitHelper("div", "div", {x, scale}));
  return call.EmitHelper("add", "add", {quotient, zero_point});
}

// (codes - zero_point) * scale as the node's result: floats, or, where they have parameters of a type, codes of that
// type.
absl::Status ResultOf(Call& call, const Value& codes, const Value& scale, const Value& zero_point,
                      std::optional<CodeType> type) {
  const std::optional<QuantParams> params =
      type.has_value() ? ParamsOf(codes, scale, zero_point, type->dtype) : std::nullopt;
  if (params.has_value()) {
    ASSIGN_OR_RETURN(const Value integers, call.EmitHelper("codes", "to", {codes}, {{"dtype", type->dtype}}));
    ASSIGN_OR_RETURN(Value real, DequantizeBy(call, "", integers, *params));
    call.Set(0, std::move(real));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Value centred, call.EmitHelper("sub", "sub", {codes, zero_point}));
  return call.Result("mul", {centred, scale});
}

// 1 where x is not negative, -1 elsewhere.
absl::StatusOr<Value> Signs(Call& call, const Value& x) {
  ASSIGN_OR_RETURN(const Value zero, call.Scalar("zero", DType::kF32, 0));
  ASSIGN_OR_RETURN(const Value one, call.Scalar("one", DType::kF32, 1));
  ASSIGN_OR_RETURN(const Value minus_one, call.Scalar("minus_one", DType::kF32, -1));
  ASSIGN_OR_RETURN(const Value not_negative, call.EmitHelper("ge", "ge", {x, zero}));
  return call.EmitHelper("signs", "where", {not_negative, one, minus_one});
}

// A quantize of that type and the dequantize behind it, with a clamp in front where the type has more codes than
// `range`. `suffix` empty: the last has the node's own name.
absl::StatusOr<Value> Rounded(Call& call, absl::string_view suffix, Value x, Range range, const CodeType& type,
                              const QuantParams& params) {
  const bool low = range.lowest > type.range.lowest, high = range.highest < type.range.highest;
  if (low || high) {
    const double infinity = std::numeric_limits<double>::infinity();
    const auto bound = [&](double code) { return (code - params.zero_point()) * params.scale(); };
    ASSIGN_OR_RETURN(x, call.EmitHelper("clamp", "clamp", {x},
                                        {{"min", low ? bound(range.lowest) : -infinity},
                                         {"max", high ? bound(range.highest) : infinity}}));
  }
  ASSIGN_OR_RETURN(const Value codes, QuantizeBy(call, "quantize", x, type.dtype, params));
  return DequantizeBy(call, suffix, codes, params);
}

// Quant, IntQuant: input, scale, zero point, bits. Between two codes of an odd zero point the even one is ours with the
// zero point taken off, and theirs with it.
absl::Status ConvertQuant(Call& call) {
  const Value &x = call.operand(0), &scale = call.operand(1), &zero_point = call.operand(2);
  ASSIGN_OR_RETURN(const int bits, ReadBits(call, 3));
  ASSIGN_OR_RETURN(const Range range, CodesOf(call, bits));
  const std::string mode = RoundingOf(call, "ROUND");
  const std::optional<CodeType> type = TypeOf(range);
  if (bits == 1 && range.lowest < 0) {
    ASSIGN_OR_RETURN(const Value scaled, Scaled(call, x, scale, zero_point));
    ASSIGN_OR_RETURN(const Value signs, Signs(call, scaled));
    return ResultOf(call, signs, scale, zero_point, type);
  }
  const std::optional<QuantParams> params =
      type.has_value() ? ParamsOf(x, scale, zero_point, type->dtype) : std::nullopt;
  if (x.constant == nullptr && params.has_value() && IsHalfEven(mode)) {
    if (params->per_tensor()) {
      ASSIGN_OR_RETURN(Value real, Rounded(call, "", x, range, *type, *params));
      call.Set(0, std::move(real));
      return absl::OkStatus();
    }
    // Channels with a scale each have one in common when they are divided by theirs, which layers beside can take in.
    const auto same = [&](int32_t zero) { return zero == params->zero_points[0]; };
    if (std::all_of(params->zero_points.begin(), params->zero_points.end(), same)) {
      ASSIGN_OR_RETURN(const Value steps, call.EmitHelper("steps", "div", {x, scale}));
      ASSIGN_OR_RETURN(const Value codes,
                       Rounded(call, "rounded", steps, range, *type, PerTensor(1, params->zero_points[0])));
      return call.Result("mul", {codes, scale});
    }
  }
  ASSIGN_OR_RETURN(const Value scaled, Scaled(call, x, scale, zero_point));
  ASSIGN_OR_RETURN(const Value bounded,
                   call.EmitHelper("clamp", "clamp", {scaled}, {{"min", range.lowest}, {"max", range.highest}}));
  ASSIGN_OR_RETURN(const Value codes, Round(call, "round", bounded, mode));
  return ResultOf(call, codes, scale, zero_point, type);
}

// Input, scale.
absl::Status ConvertBipolarQuant(Call& call) {
  ASSIGN_OR_RETURN(const Value signs, Signs(call, call.operand(0)));
  ASSIGN_OR_RETURN(const Value zero_point, call.Scalar("zero_point", DType::kF32, 0));
  return ResultOf(call, signs, call.operand(1), zero_point, TypeOf({-1, 1}));
}

// Input, scale, zero point, bits; version 1: bits of the result; version 2: scale and bits of the result. Codes lose
// their lowest bits.
absl::Status ConvertTrunc(Call& call) {
  const Value &scale = call.operand(1), &zero_point = call.operand(2);
  const bool has_scale = call.has(5);
  const std::string mode = RoundingOf(call, "FLOOR");
  ASSIGN_OR_RETURN(const int bits, ReadBits(call, 3));
  ASSIGN_OR_RETURN(const int result_bits, ReadBits(call, has_scale ? 5 : 4));
  double step = std::exp2(bits - result_bits);
  if (has_scale) {
    ASSIGN_OR_RETURN(const double from, call.ConstantScalar(1));
    ASSIGN_OR_RETURN(const double to, call.ConstantScalar(4));
    step = std::exp2(std::nearbyint(std::log2(to / from)));
  }
  if (!std::isfinite(step) || step == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found a step of ", step, " codes, wanted one that is finite and > 0"));
  }
  ASSIGN_OR_RETURN(const Value scaled, Scaled(call, call.operand(0), scale, zero_point));
  ASSIGN_OR_RETURN(const Value codes, Round(call, "round", scaled, "ROUND"));
  ASSIGN_OR_RETURN(const Value by, call.Scalar("step", DType::kF32, step));
  ASSIGN_OR_RETURN(Value fewer, call.EmitHelper("shift", "div", {codes, by}));
  if (!has_scale) {
    ASSIGN_OR_RETURN(fewer, Round(call, "truncate", fewer, mode));
    return ResultOf(call, fewer, scale, zero_point, std::nullopt);
  }
  ASSIGN_OR_RETURN(const Range range, CodesOf(call, result_bits));
  ASSIGN_OR_RETURN(fewer, call.EmitHelper("clamp", "clamp", {fewer}, {{"min", range.lowest}, {"max", range.highest}}));
  ASSIGN_OR_RETURN(fewer, Round(call, "truncate", fewer, mode));
  ASSIGN_OR_RETURN(const Value zero, call.EmitHelper("zero_point", "div", {zero_point, by}));
  return ResultOf(call, fewer, call.operand(4), zero, TypeOf(range));
}

}  // namespace

void Register(Converters& converters) {
  // The domain's names since 2021.
  for (const char* domain : {"qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general"}) {
    converters.Add(domain,
                   {
                       {"BipolarQuant", 0, {2, 2}, {1, 1}, "", ConvertBipolarQuant},
                       {"IntQuant", 0, {4, 4}, {1, 1}, "narrow=INT rounding_mode=STRING signed=INT", ConvertQuant},
                       {"Quant", 0, {4, 4}, {1, 1}, "narrow=INT rounding_mode=STRING signed=INT", ConvertQuant},
                       {"Trunc", 0, {5, 6}, {1, 1}, "narrow=INT rounding_mode=STRING signed=INT", ConvertTrunc},
                   });
  }
}

}  // namespace fuselage::onnx::converters::qonnx

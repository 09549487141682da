// com.microsoft's operators on codes: quantize(op(dequantize(x))), which `lower` makes one call of.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/quant.h"
#include "frontend/onnx/spatial.h"
#include "ir/base/status.h"

namespace fuselage::onnx::converters::microsoft_quant {
namespace {

// Zero points between them may be absent.
absl::Status CheckPresent(const Call& call, std::initializer_list<int> operands) {
  for (int i : operands) {
    if (!call.has(i)) return absl::InvalidArgumentError(absl::StrCat("found input ", i, " absent, wanted it"));
  }
  return absl::OkStatus();
}

// Three operands: codes, a scalar scale, a zero point. Their real values.
absl::StatusOr<Value> Real(Call& call, absl::string_view suffix, int codes) {
  RETURN_IF_ERROR(CheckPresent(call, {codes, codes + 1}));
  RETURN_IF_ERROR(CheckScalar(call, codes + 1, "a scale"));
  return Dequantize(call, suffix, call.operand(codes), {codes + 1, codes + 2}, 0);
}

// The node's result: `real` in codes of the type of operand `like`, by the scalar scale at `scale` and the zero point
// behind it.
absl::Status ResultCodes(Call& call, const Value& real, int scale, int like) {
  RETURN_IF_ERROR(CheckPresent(call, {scale}));
  RETURN_IF_ERROR(CheckScalar(call, scale, "a scale"));
  ASSIGN_OR_RETURN(Value codes, Quantize(call, real, {scale, scale + 1}, call.type(like).dtype, 0));
  call.Set(0, std::move(codes));
  return absl::OkStatus();
}

absl::StatusOr<Value> PermuteBy(Call& call, absl::string_view suffix, const Value& x, std::vector<int64_t> dims) {
  return call.EmitHelper(suffix, "permute", {x}, {{"dims", std::move(dims)}});
}

// [N, spatial..., C] to [N, C, spatial...] and back, around `pool`, where channels_last says so.
template <typename F>
absl::Status Pool(Call& call, F pool) {
  ASSIGN_OR_RETURN(const bool last, call.Flag("channels_last", false));
  ASSIGN_OR_RETURN(Value x, Real(call, "x_dequantize", 0));
  const int rank = x.type().rank();
  if (rank < 3)
    return absl::InvalidArgumentError(absl::StrCat("found ", ToString(x.type()), ", wanted rank 3 or more"));
  std::vector<int64_t> first(rank), back(rank);
  for (int axis = 0; axis < rank; ++axis) {
    first[axis] = axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
    back[first[axis]] = axis;
  }
  if (last) {
    ASSIGN_OR_RETURN(x, PermuteBy(call, "channels_first", x, first));
  }
  ASSIGN_OR_RETURN(Value y, pool(x));
  if (last) {
    ASSIGN_OR_RETURN(y, PermuteBy(call, "channels_last", y, back));
  }
  return ResultCodes(call, y, 3, 0);
}

absl::Status ConvertQLinearBinary(Call& call) {
  ASSIGN_OR_RETURN(const Value a, Real(call, "a_dequantize", 0));
  ASSIGN_OR_RETURN(const Value b, Real(call, "b_dequantize", 3));
  ASSIGN_OR_RETURN(const Value y, call.EmitHelper(call.target(), call.target(), {a, b}));
  return ResultCodes(call, y, 6, 0);
}

absl::Status ConvertQLinearUnary(Call& call) {
  ASSIGN_OR_RETURN(const Value x, Real(call, "x_dequantize", 0));
  Value y;
  if (call.operator_name() == "QLinearLeakyRelu") {
    ASSIGN_OR_RETURN(
        y, call.EmitHelper("leaky_relu", "leaky_relu", {x}, {{"negative_slope", call.Float("alpha", 0.01f)}}));
  } else {
    ASSIGN_OR_RETURN(y, call.EmitHelper("sigmoid", "sigmoid", {x}));
  }
  return ResultCodes(call, y, 3, 0);
}

absl::Status ConvertQLinearSoftmax(Call& call) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(call.Int("axis", -1), call.rank(0)));
  if (call.Int("opset", 13) < 13 && axis != call.rank(0) - 1) {
    return absl::UnimplementedError(absl::StrCat("found axis ", axis, " of opset ", call.Int("opset", 13),
                                                 ", wanted the last, ", call.rank(0) - 1));
  }
  ASSIGN_OR_RETURN(const Value x, Real(call, "x_dequantize", 0));
  ASSIGN_OR_RETURN(const Value y, call.EmitHelper("softmax", "softmax", {x}, {{"dim", axis}}));
  return ResultCodes(call, y, 3, 0);
}

absl::Status ConvertQLinearAveragePool(Call& call) {
  return Pool(call, [&](const Value& x) -> absl::StatusOr<Value> {
    ASSIGN_OR_RETURN(WindowedCall pool, ReadAveragePool(call, x.shape()));
    return call.EmitHelper("pool", pool.target, {x}, std::move(pool.attributes));
  });
}

absl::Status ConvertQLinearGlobalAveragePool(Call& call) {
  return Pool(call, [&](const Value& x) { return call.EmitHelper("pool", "global_avg_pool", {x}); });
}

// The result's scale and zero point, then three operands for each part.
absl::Status ConvertQLinearConcat(Call& call) {
  if (call.num_operands() < 5 || (call.num_operands() - 2) % 3 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", call.num_operands(), " inputs, wanted 2 and 3 for each part"));
  }
  std::vector<Value> parts;
  for (int i = 2; i < call.num_operands(); i += 3) {
    ASSIGN_OR_RETURN(Value part, Real(call, absl::StrCat("dequantize", parts.size()), i));
    parts.push_back(std::move(part));
  }
  ASSIGN_OR_RETURN(const Value y, call.EmitHelper("cat", "cat", parts, {{"dim", call.Int("axis", 0)}}));
  return ResultCodes(call, y, 0, 2);
}

// quantize(linear(dequantize(a), dequantize(b), dequantize(c))), without the last scale: f32.
absl::Status ConvertQGemm(Call& call) {
  constexpr int kB = 3, kC = 6, kYScale = 7;
  RETURN_IF_ERROR(CheckPresent(call, {kB, kB + 1}));
  ASSIGN_OR_RETURN(const bool trans_a, call.Flag("transA", false));
  ASSIGN_OR_RETURN(const bool trans_b, call.Flag("transB", false));
  if (call.Float("alpha", 1) != 1) {
    return absl::UnimplementedError(absl::StrCat("found alpha ", call.Float("alpha", 1), ", wanted 1"));
  }
  if (call.rank(0) != 2 || call.rank(kB) != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("found ", ToString(call.type(0)), " and ", ToString(call.type(kB)), ", wanted matrices"));
  }
  ASSIGN_OR_RETURN(Value a, Real(call, "a_dequantize", 0));
  if (trans_a) {
    ASSIGN_OR_RETURN(a, PermuteBy(call, "a", a, {1, 0}));
  }
  Value codes = call.operand(kB);  // [columns, inner], as a linear has them.
  if (!trans_b) {
    ASSIGN_OR_RETURN(codes, PermuteBy(call, "b", codes, {1, 0}));
  }
  ASSIGN_OR_RETURN(const Value b, Dequantize(call, "b_real", codes, {kB + 1, kB + 2}, 0));
  Value c;
  if (call.has(kC)) {
    ASSIGN_OR_RETURN(c, DequantizeBias(call, kC, 1, kB + 1));
  }
  if (!call.has(kYScale)) return call.Result("linear", {a, b, c});
  ASSIGN_OR_RETURN(const Value y, call.EmitHelper("linear", "linear", {a, b, c}));
  return ResultCodes(call, y, kYScale, 0);
}

// --- Integer products of values that are quantized as they come.

// f32 of an integer product, times both scales, plus the bias.
absl::Status ScaledProduct(Call& call, const Value& product, const Value& a_scale, int b_scale, int bias) {
  ASSIGN_OR_RETURN(const Value real, call.EmitHelper("real", "to", {product}, {{"dtype", DType::kF32}}));
  ASSIGN_OR_RETURN(const Value scale, call.EmitHelper("scale", "mul", {a_scale, call.operand(b_scale)}));
  if (!call.has(bias)) return call.Result("mul", {real, scale});
  ASSIGN_OR_RETURN(const Value scaled, call.EmitHelper("scaled", "mul", {real, scale}));
  return call.Result("add", {scaled, call.operand(bias)});
}

absl::Status ConvertDynamicQuantizeMatMul(Call& call) {
  ASSIGN_OR_RETURN(const std::vector<Value> a, call.builder().EmitTuple(call.name() + ".a", "dynamic_quantize_linear",
                                                                        {call.operand(0)}, {}, {true, true, true}));
  ASSIGN_OR_RETURN(const Value b_zero_point, ZeroPointOf(call, "b_zero_point", 1, 3, call.rank(1) - 1));
  ASSIGN_OR_RETURN(const Value product,
                   call.EmitHelper("matmul", "matmul_integer", {a[0], call.operand(1), a[2], b_zero_point}));
  return ScaledProduct(call, product, a[1], 2, 4);
}

absl::Status ConvertMatMulIntegerToFloat(Call& call) {
  RETURN_IF_ERROR(CheckScalar(call, 2, "a_scale"));
  ASSIGN_OR_RETURN(const Value a_zero_point, ZeroPointOf(call, "a_zero_point", 0, 4, call.rank(0) - 2));
  ASSIGN_OR_RETURN(const Value b_zero_point, ZeroPointOf(call, "b_zero_point", 1, 5, call.rank(1) - 1));
  ASSIGN_OR_RETURN(
      const Value product,
      call.EmitHelper("matmul", "matmul_integer", {call.operand(0), call.operand(1), a_zero_point, b_zero_point}));
  return ScaledProduct(call, product, call.operand(2), 3, 6);
}

constexpr char kPool[] =
    "auto_pad=STRING ceil_mode=INT channels_last=INT count_include_pad=INT kernel_shape=INTS pads=INTS strides=INTS";

}  // namespace

void Register(Converters& converters) {
  converters.Add(
      kMicrosoft,
      {
          {"DynamicQuantizeMatMul", 0, {3, 5}, {1, 1}, "", ConvertDynamicQuantizeMatMul},
          {"MatMulIntegerToFloat", 0, {4, 7}, {1, 1}, "", ConvertMatMulIntegerToFloat},
          {"QGemm", 0, {1, 9}, {1, 1}, "alpha=FLOAT transA=INT transB=INT", ConvertQGemm},
          {"QLinearAdd", 0, {1, 8}, {1, 1}, "", ConvertQLinearBinary, "add"},
          {"QLinearAveragePool", 0, {1, 5}, {1, 1}, kPool, ConvertQLinearAveragePool},
          {"QLinearConcat", 0, {1, kAnyNumber}, {1, 1}, "axis=INT", ConvertQLinearConcat},
          {"QLinearGlobalAveragePool", 0, {1, 5}, {1, 1}, "channels_last=INT", ConvertQLinearGlobalAveragePool},
          {"QLinearLeakyRelu", 0, {1, 5}, {1, 1}, "alpha=FLOAT", ConvertQLinearUnary},
          {"QLinearMul", 0, {1, 8}, {1, 1}, "", ConvertQLinearBinary, "mul"},
          {"QLinearSigmoid", 0, {1, 5}, {1, 1}, "", ConvertQLinearUnary},
          {"QLinearSoftmax", 0, {1, 5}, {1, 1}, "axis=INT opset=INT", ConvertQLinearSoftmax},
      });
}

}  // namespace fuselage::onnx::converters::microsoft_quant

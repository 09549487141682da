#include "frontend/onnx/quant.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frontend/onnx/tensors.h"
#include "ir/base/status.h"

namespace fuselage::onnx {
namespace {

// Scalars that exporters wrote as a list of one. A longer list lies along `axis`.
absl::StatusOr<int> AxisOf(const Call& call, QuantOperands operands, const Shape& shape, int64_t axis) {
  const TensorType& scale = call.type(operands.scale);
  const bool scalar = scale.shape.empty() || scale.shape == Shape{1};
  if (call.has(operands.zero_point) && call.shape(operands.zero_point) != scale.shape) {
    const Shape& zero_point = call.shape(operands.zero_point);
    if (!scalar || !(zero_point.empty() || zero_point == Shape{1})) {
      return absl::InvalidArgumentError(absl::StrCat("found a zero point of shape ", ToString(zero_point), ", wanted ",
                                                     ToString(scale.shape), " as the scale has"));
    }
  }
  if (scale.dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat("found a scale ", ToString(scale), ", wanted f32"));
  }
  if (scalar) return QuantParams::kPerTensor;
  if (scale.rank() != 1) {
    return absl::UnimplementedError(
        absl::StrCat("found a scale of shape ", ToString(scale.shape), ", wanted a scalar or a list along one axis"));
  }
  ASSIGN_OR_RETURN(const int along, NormalizeAxis(axis, static_cast<int>(shape.size())));
  if (shape[along] != scale.shape[0]) {
    return absl::InvalidArgumentError(absl::StrCat("found ", scale.shape[0], " scales, wanted ", shape[along],
                                                   ", the dimension ", along, " of ", ToString(shape)));
  }
  return along;
}

absl::Status CheckZeroPointType(const Call& call, QuantOperands operands, DType dtype) {
  if (!call.has(operands.zero_point) || call.type(operands.zero_point).dtype == dtype) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found a zero point ", ToString(call.type(operands.zero_point)),
                                                 ", wanted the codes' type ", DTypeName(dtype)));
}

// u8 codes around 128 are i8 codes around 0, which is how kernels have symmetric weights.
bool IsMiddle(const QuantParams& params) {
  return std::all_of(params.zero_points.begin(), params.zero_points.end(), [](int32_t zero) { return zero == 128; });
}
Tensor Recentred(const Tensor& codes) {
  Tensor centred(DType::kI8, codes.shape());
  for (int64_t i = 0; i < codes.num_elements(); ++i) {
    centred.data<int8_t>()[i] = static_cast<int8_t>(codes.data<uint8_t>()[i] ^ 0x80);
  }
  return centred;
}

// Attributes of quantize and dequantize.
AttributeMap ToAttributes(const QuantParams& params) {
  return {{"scales", std::vector<double>(params.scales.begin(), params.scales.end())},
          {"zero_points", std::vector<int64_t>(params.zero_points.begin(), params.zero_points.end())},
          {"axis", params.axis}};
}

// The zero point as an operand, whole or absent.
std::vector<Value> WithOperands(const Call& call, const Value& value, QuantOperands operands) {
  return {value, call.operand(operands.scale), call.operand(operands.zero_point)};
}

}  // namespace

absl::StatusOr<std::optional<QuantParams>> ReadQuantParams(const Call& call, QuantOperands operands, DType dtype,
                                                           const Shape& shape, int64_t axis) {
  QuantParams params;
  ASSIGN_OR_RETURN(params.axis, AxisOf(call, operands, shape, axis));
  RETURN_IF_ERROR(CheckZeroPointType(call, operands, dtype));
  const Tensor* scale = call.operand(operands.scale).TensorOrNull();
  const Tensor* zero_point = call.operand(operands.zero_point).TensorOrNull();
  if (scale == nullptr || (zero_point == nullptr && call.has(operands.zero_point))) return std::nullopt;
  for (int64_t i = 0; i < scale->num_elements(); ++i) {
    params.scales.push_back(scale->data<float>()[i]);
    params.zero_points.push_back(zero_point == nullptr ? 0 : static_cast<int32_t>(zero_point->At(i)));
  }
  absl::Status valid = CheckQuantParams(params, dtype, shape);
  if (!valid.ok()) {
    return Annotate(
        valid, absl::StrCat(
                   "quantization by ", Quote(call.operand(operands.scale).name),
                   zero_point == nullptr ? "" : absl::StrCat(" and ", Quote(call.operand(operands.zero_point).name))));
  }
  return params;
}

absl::StatusOr<Value> DequantizeBy(Call& call, absl::string_view suffix, const Value& codes,
                                   const QuantParams& params) {
  const auto emit = [&](const Value& operand, AttributeMap attributes) {
    return suffix.empty() ? call.Emit("dequantize", {operand}, std::move(attributes))
                          : call.EmitHelper(suffix, "dequantize", {operand}, std::move(attributes));
  };
  if (codes.constant == nullptr) {
    const bool known = codes.type().quant == params;
    return emit(codes, known ? AttributeMap() : ToAttributes(params));
  }
  if (codes.type().quant == params) return emit(codes, {});
  RETURN_IF_ERROR(call.builder().budget().Charge(codes.type().byte_size(), "its codes"));
  Tensor tensor = *codes.TensorOrNull();
  TensorType type = tensor.type();
  type.quant = params;
  if (type.dtype == DType::kU8 && IsMiddle(params)) {
    tensor = Recentred(tensor);
    type.dtype = DType::kI8;
    type.quant->zero_points.assign(params.zero_points.size(), 0);
  }
  tensor.set_type(std::move(type));
  return emit(Builder::Constant(codes.name, std::move(tensor)), {});
}

// FLOAT8 and FLOAT4 codes are values to scale; their zero point is 0.
static absl::StatusOr<Value> Scaled(Call& call, absl::string_view suffix, const Value& codes, QuantOperands operands,
                                    int64_t axis) {
  ASSIGN_OR_RETURN(const int along, AxisOf(call, operands, codes.shape(), axis));
  Shape shape(along < 0 ? 0 : codes.type().rank() - along, 1);
  if (!shape.empty()) shape[0] = codes.shape()[along];
  ASSIGN_OR_RETURN(const Value scale, call.EmitHelper(absl::StrCat(suffix, "scale"), "reshape",
                                                      {call.operand(operands.scale)}, {{"shape", shape}}));
  return suffix.empty() ? call.Emit("mul", {codes, scale}) : call.EmitHelper(suffix, "mul", {codes, scale});
}

absl::StatusOr<Value> Dequantize(Call& call, absl::string_view suffix, const Value& codes, QuantOperands operands,
                                 int64_t axis) {
  const DType dtype = codes.type().dtype;
  if (codes.widened && IsFloat(dtype)) return Scaled(call, suffix, codes, operands, axis);
  if (dtype != DType::kU8 && dtype != DType::kI8 && dtype != DType::kI16 && dtype != DType::kI32) {
    return absl::InvalidArgumentError(
        absl::StrCat("found codes ", ToString(codes.type()), ", wanted u8, i8, i16 or i32"));
  }
  ASSIGN_OR_RETURN(const std::optional<QuantParams> params,
                   ReadQuantParams(call, operands, dtype, codes.shape(), axis));
  if (params.has_value()) return DequantizeBy(call, suffix, codes, *params);
  ASSIGN_OR_RETURN(const int along, AxisOf(call, operands, codes.shape(), axis));
  const std::vector<Value> values = WithOperands(call, codes, operands);
  const AttributeMap attributes = {{"axis", along}};
  return suffix.empty() ? call.Emit("dequantize", values, attributes)
                        : call.EmitHelper(suffix, "dequantize", values, attributes);
}

absl::Status CheckScalar(const Call& call, int i, absl::string_view name) {
  if (!call.has(i) || call.shape(i) == Shape{} || call.shape(i) == Shape{1}) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("found ", name, " ", ToString(call.type(i)), ", wanted a scalar"));
}

absl::StatusOr<Value> DequantizeBias(Call& call, int bias, int x_scale, int w_scale) {
  const TensorType& type = call.type(bias);
  if (type.dtype != DType::kI32 || type.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("found a bias ", ToString(type), ", wanted i32 of rank 1"));
  }
  const Tensor* x = call.operand(x_scale).TensorOrNull();
  const Tensor* w = call.operand(w_scale).TensorOrNull();
  if (x != nullptr && w != nullptr) {
    QuantParams params;
    params.axis = w->num_elements() == 1 ? QuantParams::kPerTensor : 0;
    for (int64_t c = 0; c < w->num_elements(); ++c) {
      params.scales.push_back(static_cast<float>(x->At(0)) * static_cast<float>(w->At(c)));
    }
    params.zero_points.resize(params.scales.size());
    RETURN_IF_ERROR(Annotate(CheckQuantParams(params, DType::kI32, type.shape), "x_scale * w_scale"));
    return DequantizeBy(call, "b_dequantize", call.operand(bias), params);
  }
  ASSIGN_OR_RETURN(const Value real, call.EmitHelper("b_real", "to", {call.operand(bias)}, {{"dtype", DType::kF32}}));
  ASSIGN_OR_RETURN(const Value scale,
                   call.EmitHelper("b_scale", "mul", {call.operand(x_scale), call.operand(w_scale)}));
  return call.EmitHelper("b_dequantize", "mul", {real, scale});
}

absl::StatusOr<Value> Quantize(Call& call, const Value& real, QuantOperands operands, DType dtype, int64_t axis) {
  if (dtype != DType::kU8 && dtype != DType::kI8 && dtype != DType::kI16) {
    return absl::UnimplementedError(absl::StrCat("found codes of type ", DTypeName(dtype), ", wanted u8, i8 or i16"));
  }
  ASSIGN_OR_RETURN(const std::optional<QuantParams> params, ReadQuantParams(call, operands, dtype, real.shape(), axis));
  if (params.has_value()) return QuantizeBy(call, "", real, dtype, *params);
  ASSIGN_OR_RETURN(const int along, AxisOf(call, operands, real.shape(), axis));
  return call.Emit("quantize", WithOperands(call, real, operands), {{"axis", along}, {"dtype", dtype}});
}

absl::StatusOr<Value> QuantizeBy(Call& call, absl::string_view suffix, const Value& real, DType dtype,
                                 const QuantParams& params) {
  AttributeMap attributes = ToAttributes(params);
  attributes.emplace("dtype", dtype);
  return suffix.empty() ? call.Emit("quantize", {real}, std::move(attributes))
                        : call.EmitHelper(suffix, "quantize", {real}, std::move(attributes));
}

absl::StatusOr<Value> ZeroPointOf(Call& call, absl::string_view suffix, int codes, int zero_point, int axis) {
  const DType dtype = call.type(codes).dtype;
  if (dtype != DType::kU8 && dtype != DType::kI8) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", codes, ": found ", ToString(call.type(codes)), ", wanted u8 or i8"));
  }
  if (!call.has(zero_point)) return Value();
  if (call.type(zero_point).dtype != dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", zero_point, ": found ", ToString(call.type(zero_point)), ", wanted ", DTypeName(dtype)));
  }
  const Shape &shape = call.shape(codes), &found = call.shape(zero_point);
  if (found.size() != 1) return call.operand(zero_point);
  // Along one axis: [n] -> [n, 1, 1, ...] to broadcast against it.
  const int rank = static_cast<int>(shape.size());
  if (found[0] != 1 && (axis < 0 || axis >= rank || found[0] != shape[axis])) {
    return absl::InvalidArgumentError(absl::StrCat("input ", zero_point, ": found ", found[0],
                                                   " zero points for codes ", ToString(shape), " along axis ", axis));
  }
  Shape wanted(found[0] == 1 ? 0 : rank - axis, 1);
  if (!wanted.empty()) wanted[0] = found[0];
  return call.EmitHelper(suffix, "reshape", {call.operand(zero_point)}, {{"shape", wanted}});
}

}  // namespace fuselage::onnx

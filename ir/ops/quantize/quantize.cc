#include "ir/ops/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/ops/core/checks.h"
#include "ir/ops/core/cost.h"
#include "ir/ops/core/values.h"

namespace fuselage::ops::quantize {
namespace {

enum Operand { kInput, kScale, kZeroPoint };

bool IsCodeType(DType dtype) { return !IsFloat(dtype) && dtype != DType::kBool && dtype != DType::kI64; }

// rne(v) + zero_point, saturated to the type of the codes.
double Code(float v, int32_t zero_point, const IntegerRange& range) {
  const double code = std::isnan(v) ? zero_point : std::nearbyint(static_cast<double>(v)) + zero_point;
  return std::clamp(code, static_cast<double>(range.min), static_cast<double>(range.max));
}

// The parameters in the attributes, for codes of type `dtype` and shape `shape`.
absl::StatusOr<QuantParams> FromAttributes(const ir::OpCall& call, DType dtype, const Shape& shape) {
  QuantParams params;
  for (double scale : call.GetFloats("scales")) params.scales.push_back(static_cast<float>(scale));
  params.zero_points.assign(params.scales.size(), 0);
  const std::vector<int64_t>& zero_points = call.GetInts("zero_points");
  if (!zero_points.empty()) {
    if (zero_points.size() != params.scales.size()) {
      return AttributeError(call, "zero_points", absl::StrCat("as many as scales, ", params.scales.size()));
    }
    const IntegerRange range = RangeOf(dtype);
    for (size_t i = 0; i < zero_points.size(); ++i) {
      if (zero_points[i] < range.min || zero_points[i] > range.max) {
        return AttributeError(call, "zero_points",
                              absl::StrCat("values of ", DTypeName(dtype), ", in [", range.min, ", ", range.max, "]"));
      }
      params.zero_points[i] = static_cast<int32_t>(zero_points[i]);
    }
  }
  const int64_t axis = call.GetInt("axis");
  if (axis < -1 || axis >= static_cast<int64_t>(shape.size())) {
    return AttributeError(call, "axis", absl::StrCat("-1 (per tensor) or an axis of ", ToString(shape)));
  }
  params.axis = static_cast<int>(axis);
  RETURN_IF_ERROR(CheckQuantParams(params, dtype, shape));
  return params;
}

// Operands scale and zero_point of inference: their types, and shapes that fit the axis.
absl::Status CheckParameterOperands(const ir::InferCall& call, DType codes) {
  if (!call.has(kScale)) {
    if (call.has(kZeroPoint)) return OperandError(call, kZeroPoint, "without a scale");
    return absl::OkStatus();
  }
  if (!call.GetFloats("scales").empty() || !call.GetInts("zero_points").empty()) {
    return AttributeError(call, "scales", "none beside the operand scale");
  }
  const TensorType& input = call.tensor(kInput);
  const int64_t axis = call.GetInt("axis");
  if (axis < -1 || axis >= input.rank()) {
    return AttributeError(call, "axis", absl::StrCat("-1 (per tensor) or an axis of ", ToString(input)));
  }
  RETURN_IF_ERROR(CheckDType(call, kScale, DType::kF32));
  if (axis >= 0) {
    RETURN_IF_ERROR(CheckShape(call, kScale, {input.shape[axis]}));
  } else if (call.tensor(kScale).shape != Shape{} && call.tensor(kScale).shape != Shape{1}) {
    return OperandError(call, kScale, "wanted one value, shape [] or [1]");
  }
  if (!call.has(kZeroPoint)) return absl::OkStatus();
  RETURN_IF_ERROR(CheckDType(call, kZeroPoint, codes));
  return CheckShape(call, kZeroPoint, call.tensor(kScale).shape);
}

// The parameters of a call, which CheckParameterOperands or FromAttributes has checked.
absl::StatusOr<QuantParams> ParamsOf(const ir::EvaluateCall& call, DType codes, const Shape& shape) {
  if (call.has(kScale)) {
    QuantParams params;
    params.axis = static_cast<int>(call.GetInt("axis"));
    for (int64_t i = 0; i < call.tensor(kScale).num_elements(); ++i) {
      params.scales.push_back(call.tensor(kScale).data<float>()[i]);
      params.zero_points.push_back(call.has(kZeroPoint) ? static_cast<int32_t>(call.tensor(kZeroPoint).At(i)) : 0);
    }
    RETURN_IF_ERROR(CheckQuantParams(params, codes, shape));
    return params;
  }
  if (call.GetFloats("scales").empty()) return *call.tensor(kInput).type().quant;
  return FromAttributes(call, codes, shape);
}

// The index of the scale of each element along its axis: (i / inner) % count.
struct ScaleIndex {
  ScaleIndex(const QuantParams& params, const Shape& shape) {
    if (params.per_tensor()) return;
    count = shape[params.axis];
    for (size_t axis = params.axis + 1; axis < shape.size(); ++axis) inner *= shape[axis];
  }
  int64_t operator()(int64_t i) const { return i / inner % count; }
  int64_t inner = 1, count = 1;
};

// --- quantize.

absl::StatusOr<ir::Type> InferQuantize(const ir::InferCall& call) {
  const TensorType& input = call.tensor(kInput);
  RETURN_IF_ERROR(CheckNoCodes(call, kInput));
  if (input.dtype != DType::kF32 && input.dtype != DType::kI32) return OperandError(call, kInput, "wanted f32 or i32");
  const DType dtype = call.GetDType("dtype");
  if (!IsCodeType(dtype)) return AttributeError(call, "dtype", "u8, i8, i16 or i32");
  RETURN_IF_ERROR(CheckParameterOperands(call, dtype));
  if (call.has(kScale)) return ResultType(dtype, input.shape);
  if (call.GetFloats("scales").empty()) return AttributeError(call, "scales", "a scale, here or as an operand");
  ASSIGN_OR_RETURN(QuantParams params, FromAttributes(call, dtype, input.shape));
  return ResultType(dtype, input.shape, std::move(params));
}

absl::StatusOr<std::vector<Tensor>> EvaluateQuantize(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(kInput);
  Tensor result(call.result());
  ASSIGN_OR_RETURN(const QuantParams params, ParamsOf(call, result.dtype(), result.shape()));
  const IntegerRange range = RangeOf(result.dtype());
  const ScaleIndex index(params, result.shape());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int64_t c = index(i);
    const float x =
        input.dtype() == DType::kF32 ? input.data<float>()[i] : static_cast<float>(input.data<int32_t>()[i]);
    result.Set(i, Code(x / params.scales[c], params.zero_points[c], range));
  }
  return One(std::move(result));
}

// --- dequantize.

absl::StatusOr<ir::Type> InferDequantize(const ir::InferCall& call) {
  const TensorType& input = call.tensor(kInput);
  if (!IsCodeType(input.dtype)) return OperandError(call, kInput, "wanted u8, i8, i16 or i32");
  RETURN_IF_ERROR(CheckParameterOperands(call, input.dtype));
  if (!call.has(kScale)) {
    if (!call.GetFloats("scales").empty()) {
      RETURN_IF_ERROR(FromAttributes(call, input.dtype, input.shape).status());
    } else if (!input.quant) {
      return OperandError(call, kInput, "no scale: neither an operand, nor an attribute, nor in this type");
    }
  }
  return ResultType(DType::kF32, input.shape);
}

absl::StatusOr<std::vector<Tensor>> EvaluateDequantize(const ir::EvaluateCall& call) {
  const Tensor& input = call.tensor(kInput);
  ASSIGN_OR_RETURN(const QuantParams params, ParamsOf(call, input.dtype(), input.shape()));
  const ScaleIndex index(params, input.shape());
  Tensor result(call.result());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const int64_t c = index(i);
    result.data<float>()[i] = static_cast<float>(input.At(i) - params.zero_points[c]) * params.scales[c];
  }
  return One(std::move(result));
}

}  // namespace

void Register(ir::OpRegistry& registry) {
  const std::vector<ir::OperandSpec> operands = {
      {"input"}, {"scale", /*optional=*/true}, {"zero_point", /*optional=*/true}};
  const std::vector<ir::AttributeSpec> attributes = {{"scales", AttributeKind::kFloats, std::vector<double>{}},
                                                     {"zero_points", AttributeKind::kInts, std::vector<int64_t>{}},
                                                     {"axis", AttributeKind::kInt, QuantParams::kPerTensor}};
  ir::OpSchema quantize;
  quantize.name = "quantize";
  quantize.operands = operands;
  quantize.attributes = attributes;
  quantize.attributes.push_back({"dtype", AttributeKind::kDType, DType::kU8});
  quantize.itemwise = true;
  quantize.infer = InferQuantize;
  quantize.evaluate = EvaluateQuantize;
  quantize.operations_per_element = kQuantizeOperations;
  registry.Register(std::move(quantize));

  ir::OpSchema dequantize;
  dequantize.name = "dequantize";
  dequantize.operands = operands;
  dequantize.attributes = attributes;
  dequantize.itemwise = true;
  dequantize.infer = InferDequantize;
  dequantize.evaluate = EvaluateDequantize;
  dequantize.operations_per_element = kDequantizeOperations;
  registry.Register(std::move(dequantize));
}

}  // namespace fuselage::ops::quantize

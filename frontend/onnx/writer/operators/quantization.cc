// QuantizeLinear and DequantizeLinear.
#include "frontend/onnx/writer/quantization.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "onnx/onnx.pb.h"

namespace fuselage::onnx::writer::operators::quantization {
namespace {

absl::Status WriteQuantization(const Call& c) {
  const bool quantize = c.op.schema().name == "quantize";
  const TensorType& codes = quantize ? c.result.tensor() : c.type(0);
  const DType dtype = codes.dtype;
  const bool bytes = dtype == DType::kU8 || dtype == DType::kI8;
  if (!bytes && dtype != DType::kI16 && (quantize || dtype != DType::kI32)) {
    return c.Declined(absl::StrCat(" with codes of type ", DTypeName(dtype)));
  }
  if (dtype == DType::kI16) c.to.Require(21);
  Values in = c.in;
  int64_t axis = c.op.GetInt("axis");
  if (const auto params = ConstantParams(c.op, c.has(1), codes); params.has_value()) {
    const Values names = QuantInitializers(c.name, *params, dtype, c.to);
    in = {in[0], names[0], names[1]};
    axis = params->axis;
  } else if (!c.has(1)) {
    return absl::InvalidArgumentError("found no scale, wanted one");
  } else if (quantize && dtype != DType::kU8 && !c.has(2)) {
    // The zero point says the codes' type.
    const Shape shape = c.type(1).shape;
    in = {in[0], in[1], c.Constant("zero_point", Tensor(dtype, shape))};
  }
  ModelBuilder& node = c.Emit(c.onnx, in);
  if (axis != QuantParams::kPerTensor) node.Int("axis", axis);
  return absl::OkStatus();
}

// By the operators of its definition: ONNX's own has a zero point.
absl::Status WriteDynamicQuantizeSymmetric(const Call& c) {
  const auto emit = [&](const char* op, Values in, const char* suffix) {
    c.to.Emit(op, std::move(in), c.Suffixed(suffix));
    return c.Suffixed(suffix);
  };
  const auto number = [&](const char* suffix, double value) { return c.Number(suffix, value, DType::kF32); };
  const std::string magnitudes = emit("Abs", {c.in[0]}, "magnitudes"), largest = c.Suffixed("largest");
  c.EmitReduction(c.onnx, magnitudes, /*keepdims=*/!c.op.GetInts("dims").empty(), largest);
  const std::string step = emit("Div", {largest, number("most", 127)}, "step");
  const std::string is_zero = emit("Less", {step, number("least", std::numeric_limits<float>::min())}, "is_zero");
  c.to.Emit("Where", {is_zero, number("one", 1), step}, c.Element(1));
  const std::string steps = emit("Div", {c.in[0], c.Element(1)}, "steps");
  const std::string rounded = emit("Round", {steps}, "rounded");
  const std::string clipped = emit("Clip", {rounded, number("lower", -127), number("upper", 127)}, "clipped");
  c.to.Emit("Cast", {clipped}, c.Element(0)).Int("to", schema::TensorProto::INT8);
  return absl::OkStatus();
}

absl::Status WriteDequantizeGroups(const Call& c) {
  const int64_t size = c.op.GetInt("group_size"), last = c.type(0).rank() - 1;
  if (c.type(0).shape[last] % size != 0) return c.Declined(" whose groups do not divide the features");
  c.to.Require(21);
  c.Emit(c.onnx, c.in).Int("axis", last).Int("block_size", size);
  return absl::OkStatus();
}

absl::Status WriteDynamicQuantize(const Call& c) {
  if (!c.op.GetInts("dims").empty()) return c.Declined(" along axes");
  c.to.Emit("DynamicQuantizeLinear", c.in, {c.Element(0), c.Element(1), c.Element(2)});
  return absl::OkStatus();
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"dequantize", WriteQuantization, "DequantizeLinear"},
      {"dequantize_groups", WriteDequantizeGroups, "DequantizeLinear"},
      {"dequantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
      {"dynamic_quantize_asymmetric", WriteDynamicQuantize, "DynamicQuantizeLinear"},
      {"dynamic_quantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
      {"dynamic_quantize_symmetric", WriteDynamicQuantizeSymmetric, "ReduceMax"},
      {"quantize", WriteQuantization, "QuantizeLinear"},
  });
}

}  // namespace fuselage::onnx::writer::operators::quantization

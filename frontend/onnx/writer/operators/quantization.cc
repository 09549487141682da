// QuantizeLinear and DequantizeLinear.
#include "frontend/onnx/writer/quantization.h"

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

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

absl::Status WriteDynamicQuantize(const Call& c) {
  if (!c.op.GetInts("dims").empty()) return c.Declined(" along axes");
  c.to.Emit("DynamicQuantizeLinear", c.in, {c.Element(0), c.Element(1), c.Element(2)});
  return absl::OkStatus();
}

}  // namespace

void Register(Operators& operators) {
  operators.Add({
      {"dequantize", WriteQuantization, "DequantizeLinear"},
      {"dequantize_groups", nullptr, "a scale for each group of codes, which older runtimes lack, is not written"},
      {"dequantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
      {"dynamic_quantize_asymmetric", WriteDynamicQuantize, "DynamicQuantizeLinear"},
      {"dynamic_quantize_mxfp4", nullptr, "ONNX has no codes with a scale for each group of 32"},
      {"dynamic_quantize_symmetric", nullptr, "ONNX's dynamic quantization has a zero point"},
      {"quantize", WriteQuantization, "QuantizeLinear"},
  });
}

}  // namespace fuselage::onnx::writer::operators::quantization

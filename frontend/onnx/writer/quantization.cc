#include "frontend/onnx/writer/quantization.h"

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace fuselage::onnx::writer {
namespace {

// Initializers of scale and zero point.
Values Params(const std::string& name, const QuantParams& params, DType dtype, Emitter& to) {
  const Shape shape = params.per_tensor() ? Shape{} : Shape{static_cast<int64_t>(params.scales.size())};
  Tensor zero_points(dtype, shape);
  for (int64_t i = 0; i < zero_points.num_elements(); ++i) zero_points.Set(i, params.zero_points[i]);
  to.model().Initializer(name + ":scale", Tensor::Of<float>(shape, params.scales));
  to.model().Initializer(name + ":zero_point", zero_points);
  return {name + ":scale", name + ":zero_point"};
}

}  // namespace

std::optional<QuantParams> ConstantParams(const ir::OpCall& op, bool operands, const TensorType& codes) {
  if (operands) return std::nullopt;
  if (op.schema().name == "quantize") return codes.quant;
  QuantParams params;
  for (double scale : op.GetFloats("scales")) params.scales.push_back(static_cast<float>(scale));
  if (params.scales.empty()) return codes.quant;
  const std::vector<int64_t>& zero_points = op.GetInts("zero_points");
  params.zero_points.assign(zero_points.begin(), zero_points.end());
  params.zero_points.resize(params.scales.size(), 0);
  params.axis = static_cast<int>(op.GetInt("axis"));
  return params;
}

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
    const Values names = Params(c.name, *params, dtype, c.to);
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

void Dequantize(const std::string& codes, const QuantParams& params, DType dtype, const std::string& result,
                Emitter& to) {
  const Values names = Params(result, params, dtype, to);
  ModelBuilder& node = to.Emit("DequantizeLinear", {codes, names[0], names[1]}, result);
  if (!params.per_tensor()) node.Int("axis", params.axis);
}

absl::Status WriteDynamicQuantize(const Call& c) {
  if (!c.op.GetInts("dims").empty()) return c.Declined(" along axes");
  c.to.Emit("DynamicQuantizeLinear", c.in, {c.Element(0), c.Element(1), c.Element(2)});
  return absl::OkStatus();
}

}  // namespace fuselage::onnx::writer

#include "frontend/onnx/writer/quantization.h"

namespace fuselage::onnx::writer {

Values QuantInitializers(const std::string& name, const QuantParams& params, DType dtype, Emitter& to) {
  const Shape shape = params.per_tensor() ? Shape{} : Shape{static_cast<int64_t>(params.scales.size())};
  Tensor zero_points(dtype, shape);
  for (int64_t i = 0; i < zero_points.num_elements(); ++i) zero_points.Set(i, params.zero_points[i]);
  to.model().Initializer(name + ":scale", Tensor::Of<float>(shape, params.scales));
  to.model().Initializer(name + ":zero_point", zero_points);
  return {name + ":scale", name + ":zero_point"};
}

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

void Dequantize(const std::string& codes, const QuantParams& params, DType dtype, const std::string& result,
                Emitter& to) {
  const Values names = QuantInitializers(result, params, dtype, to);
  ModelBuilder& node = to.Emit("DequantizeLinear", {codes, names[0], names[1]}, result);
  if (!params.per_tensor()) node.Int("axis", params.axis);
}

}  // namespace fuselage::onnx::writer

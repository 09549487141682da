#include "tools/peers/layer.h"

namespace fuselage::peers {

absl::StatusOr<Layer> Layer::Of(const ir::Node& node) {
  Layer layer{node.operand(0)->tensor_type(),
              node.tensor_type(),
              node.graph().ParameterOfOrNull(node, "weight"),
              node.graph().ParameterOfOrNull(node, "bias"),
              {},
              {}};
  if (layer.weight == nullptr || !layer.weight->type().quant.has_value()) {
    return absl::UnimplementedError("found a weight that is computed, wanted a parameter");
  }
  const QuantParams& weights = *layer.weight->type().quant;
  for (int64_t c = 0; c < layer.weight->dim(0); ++c) {
    const float step = ScaleOf(layer.input) * (weights.per_tensor() ? weights.scale() : weights.scales[c]);
    layer.scales.push_back(step / ScaleOf(layer.output));
    const bool codes = layer.bias != nullptr && layer.bias->dtype() == DType::kI32;
    layer.addends.push_back(layer.bias == nullptr ? 0 : layer.bias->At(c) / (codes ? 1 : step));
  }
  return layer;
}

}  // namespace fuselage::peers

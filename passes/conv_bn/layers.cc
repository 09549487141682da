#include "passes/conv_bn/layers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/match/in_place.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"

namespace fuselage::conv_bn {

using ir::Node;

namespace {

bool HasActivation(const Node& node) {
  return node.op()->FindAttributeOrNull("activation") != nullptr && node.attribute("activation").as_string() != "none";
}

bool IsTransposed(const Node& layer) { return absl::StartsWith(layer.op()->name, "conv_transpose"); }

// Codes around 0 with a scale for all output channels or for each.
bool AreScaled(const TensorType& weight) {
  if (weight.dtype != DType::kI8 || !weight.quant || weight.quant->axis > 0 || weight.num_elements() == 0) return false;
  const std::vector<int32_t>& zero_points = weight.quant->zero_points;
  return std::all_of(zero_points.begin(), zero_points.end(), [](int32_t zero) { return zero == 0; });
}

}  // namespace

bool IsSum(const Node& node, absl::string_view op) {
  if (!node.IsOp(op) || !match::IsF32(node) || HasActivation(node)) return false;
  if (node.op()->FindAttributeOrNull("alpha") != nullptr && node.attribute("alpha").as_float() != 1) return false;
  return node.kind() == ir::NodeKind::kCallModule || !match::IsInPlace(node.target());
}

bool IsLayer(const Node& node) {
  return node.op() != nullptr && (node.IsOp("linear") || match::IsConvolution(node) || IsTransposed(node));
}

int ChannelAxis(const Node& layer) { return match::ChannelAxis(layer, layer.tensor_type()); }

std::string WhyNotFoldable(const Node& layer, int axis, Weights weights, Layer* parts) {
  const ir::Graph& graph = layer.graph();
  const std::string name = absl::StrCat("%", layer.name());
  if (layer.module() == nullptr) return absl::StrCat(name, " is no call_module (run normalize first)");
  const std::string shared = match::SharedModule(layer);
  if (!shared.empty()) return shared;
  parts->weight = graph.ParameterOfOrNull(layer, "weight");
  parts->bias = graph.ParameterOfOrNull(layer, "bias");
  for (const Tensor* t : {parts->weight, parts->bias}) {
    if (t == nullptr || t->dtype() == DType::kF32) continue;
    if (t == parts->weight && weights == Weights::kCodes && !IsTransposed(layer) && AreScaled(t->type())) continue;
    const absl::string_view kind = t->type().quant ? "quantized" : DTypeName(t->dtype());
    return absl::StrCat("the parameters of ", name, " are ", kind);
  }
  if (axis != kEveryAxis && axis != ChannelAxis(layer)) {
    return absl::StrCat("it is along axis ", axis, ", where ", name, " has channels along axis ", ChannelAxis(layer));
  }
  if (!layer.IsOp("linear")) {
    parts->groups = layer.attribute("groups").as_int();
    parts->transposed = IsTransposed(layer);
  }
  return "";
}

std::string WhyNotLinear(const Node& layer) {
  if (HasActivation(layer)) return absl::StrCat("%", layer.name(), " has an activation");
  return layer.num_operands() > 1 ? absl::StrCat("%", layer.name(), " has a residual") : "";
}

absl::Status SetWeights(ir::Graph& graph, Node* layer, Folded folded, bool has_bias) {
  ir::Module* module = layer->module();
  std::map<std::string, std::string> parameters = module->parameters;
  parameters["weight"] = graph.AddParameter(absl::StrCat(module->path, ".folded_weight"),
                                            std::make_shared<const Tensor>(std::move(folded.weight)));
  if (parameters.count("bias") > 0 || has_bias) {
    parameters["bias"] = graph.AddParameter(absl::StrCat(module->path, ".folded_bias"),
                                            std::make_shared<const Tensor>(std::move(folded.bias)));
  }
  return graph.UpdateModule(module, module->op->name, module->attributes, std::move(parameters));
}

}  // namespace fuselage::conv_bn

#include "passes/equalization/scale_layer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/equalization/channel_groups.h"

namespace fuselage::equalization {
namespace {

// Element c divided by 2^exponents[c].
Tensor Divided(Tensor vector, absl::Span<const int> exponents) {
  for (size_t c = 0; c < exponents.size(); ++c) {
    float& value = vector.data<float>()[c];
    value = std::ldexp(value, -exponents[c]);
  }
  return vector;
}

// Gives the module of `layer` new parameters, by the names of its operands.
absl::Status SetParameters(const ir::Node& layer, std::map<std::string, Tensor> tensors, absl::string_view adjective,
                           ir::Graph& graph) {
  ir::Module* module = layer.module();
  std::map<std::string, std::string> parameters = module->parameters;
  for (auto& [name, tensor] : tensors) {
    parameters[name] = graph.AddParameter(absl::StrCat(module->path, ".", adjective, "_", name),
                                          std::make_shared<const Tensor>(std::move(tensor)));
  }
  return graph.UpdateModule(module, module->op->name, module->attributes, std::move(parameters));
}

}  // namespace

absl::Status ScaleLayer(ir::Node* layer, const LayerScales& scales, absl::string_view adjective, ir::Graph& graph) {
  const auto [outputs, inputs, kernel, groups] = ShapeOf(*layer);
  Tensor weight = *graph.ParameterOfOrNull(*layer, "weight");
  float* w = weight.data<float>();
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      const int64_t c = o / (outputs / groups) * inputs + i;
      const int exponent =
          (scales.columns.empty() ? 0 : scales.columns[c]) - (scales.rows.empty() ? 0 : scales.rows[o]);
      for (int64_t k = 0; k < kernel; ++k, ++w) *w = std::ldexp(*w, exponent);
    }
  }
  std::map<std::string, Tensor> tensors;
  tensors.emplace("weight", std::move(weight));
  if (const Tensor* bias = graph.ParameterOfOrNull(*layer, "bias"); bias != nullptr && !scales.rows.empty()) {
    tensors.emplace("bias", Divided(*bias, scales.rows));
  }
  return SetParameters(*layer, std::move(tensors), adjective, graph);
}

absl::Status ScaleNorm(ir::Node* norm, absl::Span<const int> exponents, absl::string_view adjective, ir::Graph& graph) {
  std::map<std::string, Tensor> tensors;
  const Tensor* weight = graph.ParameterOfOrNull(*norm, "weight");
  Tensor ones(DType::kF32, {static_cast<int64_t>(exponents.size())});
  std::fill_n(ones.data<float>(), exponents.size(), 1.0f);
  tensors.emplace("weight", Divided(weight == nullptr ? std::move(ones) : *weight, exponents));
  if (norm->op()->OperandIndex("bias") >= 0) {
    const Tensor* bias = graph.ParameterOfOrNull(*norm, "bias");
    if (bias != nullptr) tensors.emplace("bias", Divided(*bias, exponents));
  }
  return SetParameters(*norm, std::move(tensors), adjective, graph);
}

absl::Status ScaleValue(ir::Node* value, absl::Span<const int> exponents, ir::Graph& graph) {
  Shape shape(value->tensor_type().rank() - 1, 1);
  shape[0] = static_cast<int64_t>(exponents.size());
  Tensor factors(DType::kF32, shape);
  for (size_t c = 0; c < exponents.size(); ++c) factors.data<float>()[c] = std::ldexp(1.0f, -exponents[c]);
  const std::string name =
      graph.AddParameter(absl::StrCat(value->name(), ".equalized"), std::make_shared<const Tensor>(std::move(factors)));
  const std::vector<ir::Use> uses = value->uses();
  ir::Node* const before = value->next();
  ASSIGN_OR_RETURN(ir::Node * factor, graph.AddGetAttr(absl::StrCat(value->name(), "_factors"), name, before));
  ASSIGN_OR_RETURN(ir::Node * scaled,
                   graph.AddFunction(absl::StrCat(value->name(), "_equalized"), "mul", {value, factor}, {}, before));
  scaled->AddSources(value->SourcesOrSelf());
  for (const ir::Use& use : uses) use.user->set_operand(use.index, scaled);
  return absl::OkStatus();
}

}  // namespace fuselage::equalization

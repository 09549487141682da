#include "passes/quantize/mxfp4_weights.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/check.h"
#include "ir/base/hash_map.h"

namespace fuselage::quantize {
namespace {

using ir::Node;

const AttributeMap kGroups = {{"group_size", int64_t{32}}};

// Names of parameters.
struct Mxfp4 {
  std::string codes, scale;
};

absl::StatusOr<Mxfp4> AddWeight(const std::string& name, ir::Graph& graph) {
  const ir::OpSchema* op = graph.ops().FindOrNull("dynamic_quantize_mxfp4");
  FUSELAGE_CHECK(op != nullptr);
  const std::vector<Tensor> weight = {*graph.FindParameterOrNull(name)->tensor};
  const ir::Type operand(weight[0].type());
  ASSIGN_OR_RETURN(const ir::Type type, ir::Infer(*op, kGroups, {&operand}));
  ASSIGN_OR_RETURN(std::vector<Tensor> values, ir::Evaluate(*op, kGroups, {&weight}, type));
  const auto add = [&](const char* suffix, Tensor value) {
    return graph.AddParameter(absl::StrCat(name, suffix), std::make_shared<const Tensor>(std::move(value)));
  };
  Mxfp4 added;
  added.codes = add(".mxfp4", std::move(values[0]));
  added.scale = add(".mxfp4_scale", std::move(values[1]));
  return added;
}

}  // namespace

absl::Status UseMxfp4Weights(const std::vector<Node*>& linears, ir::Graph& graph) {
  HashMap<std::string, Mxfp4> weights;  // By the name of the float weight.
  for (Node* linear : linears) {
    ir::Module* const module = linear->module();
    const std::string name = module->parameters.at("weight");
    if (!weights.contains(name)) {
      ASSIGN_OR_RETURN(Mxfp4 added, AddWeight(name, graph));
      weights.emplace(name, std::move(added));
    }
    const Mxfp4 weight = weights.at(name);
    ASSIGN_OR_RETURN(Node * codes, graph.AddGetAttr(weight.codes, weight.codes, linear));
    ASSIGN_OR_RETURN(Node * scale, graph.AddGetAttr(weight.scale, weight.scale, linear));
    ASSIGN_OR_RETURN(Node * floats, graph.AddFunction(absl::StrCat(linear->name(), "_weight"), "dequantize_mxfp4",
                                                      {codes, scale}, kGroups, linear));
    floats->AddSources(linear->SourcesOrSelf());
    std::vector<Node*> operands = {linear->operand(0), floats};
    if (const auto bias = module->parameters.find("bias"); bias != module->parameters.end()) {
      ASSIGN_OR_RETURN(Node * value, graph.AddGetAttr(bias->second, bias->second, linear));
      operands.push_back(value);
    }
    ASSIGN_OR_RETURN(Node * function,
                     graph.AddFunction(linear->name(), module->op->name, operands, module->attributes, linear));
    graph.Replace(linear, function);
    if (module->call_sites.empty()) graph.EraseModule(module);
  }
  return absl::OkStatus();
}

}  // namespace fuselage::quantize

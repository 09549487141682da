#include "passes/quantize/group_weights.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"

namespace fuselage::quantize {
namespace {

using ir::Node;

// Elements of a weight from which on four bits are worth keeping. A smaller one lies in a near cache whatever its bits,
// and a scale for each token, with a float result, takes longer than what it spares.
constexpr int64_t kLeastElements = (int64_t{1} << 16) + 1;

// Names of parameters.
struct Names {
  std::string codes, scale;
};

Names AddWeight(const std::string& name, const WeightFormat& format, ir::Graph& graph) {
  GroupedWeight weight = InGroups(*graph.FindParameterOrNull(name)->tensor, format);
  const char* suffix = format.is_mxfp4() ? ".mxfp4" : format.weights == QuantizeOptions::INT4 ? ".i4" : ".i8_groups";
  const auto add = [&](const char* part, Tensor value) {
    return graph.AddParameter(absl::StrCat(name, suffix, part), std::make_shared<const Tensor>(std::move(value)));
  };
  Names names;
  names.codes = add("", std::move(weight.codes));
  names.scale = add("_scale", std::move(weight.scale));
  return names;
}

}  // namespace

bool TakesRows(const Node& node) {
  if (node.module() == nullptr) return false;
  const ir::OpSchema* form = node.graph().ops().FindQuantizedFormOrNull(node.op()->name);
  return form != nullptr && form->OperandIndex("input_scale") >= 0;
}

HashMap<std::string, int64_t> FourBitWeights::Find(const QuantizeOptions& options, const ir::Graph& graph) {
  HashMap<std::string, int64_t> sizes;
  if (options.recode_four_bits() || WeightFormat(options.weights()).in_groups()) return sizes;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!TakesRows(*node)) continue;
    const std::string& name = node->module()->parameters.at("weight");
    const std::shared_ptr<const Tensor>& weight = graph.FindParameterOrNull(name)->tensor;
    if (weight->num_elements() < kLeastElements) continue;
    const auto [found, is_new] = found_.try_emplace(weight);
    if (is_new) found->second = FourBitGroups(*weight);
    if (found->second) sizes.emplace(name, *found->second);
  }
  return sizes;
}

absl::Status UseGroupWeights(const std::vector<GroupedLinear>& linears, ir::Graph& graph) {
  HashMap<std::string, Names> weights;  // By the name of the float weight.
  for (const auto& [linear, format] : linears) {
    const char* dequantize = format.is_mxfp4() ? "dequantize_mxfp4" : "dequantize_groups";
    ir::Module* const module = linear->module();
    const std::string name = module->parameters.at("weight");
    if (!weights.contains(name)) weights.emplace(name, AddWeight(name, format, graph));
    const Names weight = weights.at(name);
    ASSIGN_OR_RETURN(Node * codes, graph.AddGetAttr(weight.codes, weight.codes, linear));
    ASSIGN_OR_RETURN(Node * scale, graph.AddGetAttr(weight.scale, weight.scale, linear));
    ASSIGN_OR_RETURN(Node * floats, graph.AddFunction(absl::StrCat(linear->name(), "_weight"), dequantize,
                                                      {codes, scale}, {{"group_size", format.group_size}}, linear));
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

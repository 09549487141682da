#include "passes/int8_fusion/norms.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/match/batch.h"
#include "ir/match/sharing.h"

namespace fuselage::int8_fusion {
namespace {

using ir::Node;

bool IsRowQuantize(const Node& node) { return node.IsOp("dynamic_quantize_symmetric"); }

std::string FormOf(const Node& norm) { return absl::StrCat("int8.", norm.op()->name); }

// add(x, r) of types that are equal in every batch, whose sum readers can have from a tuple.
bool IsPlainSum(const Node& node) {
  if (!node.IsOp("add") || (node.module() == nullptr && node.target() != "add")) return false;
  return node.attribute("alpha").as_float() == 1 && node.attribute("activation").as_string() == "none" &&
         node.operand(0)->type() == node.type() && node.operand(1)->type() == node.type() &&
         match::FollowsBatch(*node.operand(0)) && match::FollowsBatch(*node.operand(1));
}

// Readers take results by indices that stay when the tuple grows.
bool HasPlainReaders(const Node& tuple) {
  const std::vector<Node*> users = tuple.users();
  return std::all_of(users.begin(), users.end(),
                     [](const Node* user) { return user->IsOp("getitem") && user->attribute("index").as_int() >= 0; });
}

// What the fused node reads.
std::vector<Node*> OperandsOf(const FusableNorm& fusable) {
  if (fusable.sum != nullptr) return fusable.sum->operands();
  return {(fusable.dequantize != nullptr ? fusable.dequantize : fusable.norm)->operand(0)};
}

// Asks op and kernel. Why they refuse; else the kernel's variant.
absl::StatusOr<std::string> VariantOf(const FusableNorm& fusable, const kernels::KernelRegistry& kernels) {
  const ir::Graph& graph = fusable.norm->graph();
  const ir::OpSchema* schema = graph.ops().FindOrNull(FormOf(*fusable.norm));
  const kernels::KernelEntry* entry = kernels.FindOrNull(FormOf(*fusable.norm));
  if (schema == nullptr || entry == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("no ", schema == nullptr ? "operator " : "kernel for ", FormOf(*fusable.norm)));
  }
  kernels::KernelDesc desc;
  desc.op = schema->name;
  desc.isa = kernels::BestIsa();
  desc.attributes = fusable.attributes;
  std::vector<const ir::Type*> types = graph.OperandTypes(*fusable.norm);
  types.resize(schema->operands.size());
  const std::vector<Node*> operands = OperandsOf(fusable);
  types[0] = &operands[0]->type();
  if (operands.size() > 1) types.back() = &operands[1]->type();
  for (const Node* operand : operands) desc.inputs.push_back(operand->tensor_type());
  for (const auto& [operand, parameter] : fusable.norm->module()->parameters) {
    desc.parameters[operand] = graph.FindParameterOrNull(parameter)->tensor.get();
  }
  while (types.back() == nullptr) types.pop_back();
  ASSIGN_OR_RETURN(const ir::Type type, ir::Infer(*schema, desc.attributes, types));
  desc.outputs = type.elements();
  return entry->Supports(desc);
}

}  // namespace

FusableNorm FusableNormAt(Node* norm, const kernels::KernelRegistry& kernels) {
  FusableNorm found;
  if (!norm->IsOp("layer_norm") && !norm->IsOp("rms_norm")) return found;
  found.norm = norm;
  for (Node* user : norm->users()) {
    if (user->IsOp("int8.quantize") || IsRowQuantize(*user)) found.quantize = user;
  }
  if (found.quantize == nullptr) return found;
  const Node& quantize = *found.quantize;
  const bool rows = IsRowQuantize(quantize);
  if (!norm->has_one_use()) {
    found.why_not = match::SharedBesides(*norm, quantize);
  } else if (norm->module() == nullptr) {
    found.why_not = absl::StrCat("%", norm->name(), " is no call_module");
  } else if (rows && quantize.attribute("dims").as_ints().empty()) {
    found.why_not = absl::StrCat("%", quantize.name(), " has one scale for all rows");
  } else {
    found.why_not = match::SharedModule(*norm);
  }
  if (!found.why_not.empty()) return found;
  for (const Node* node : std::initializer_list<const Node*>{norm, &quantize}) {
    for (const ir::AttributeSpec& spec : node->op()->attributes) {
      found.attributes.emplace(spec.name, node->attribute(spec.name));
    }
  }
  if (const ir::OpSchema* form = norm->graph().ops().FindOrNull(FormOf(*norm))) {
    for (const ir::AttributeSpec& spec : form->attributes) {
      if (spec.default_value) found.attributes.emplace(spec.name, *spec.default_value);
    }
  }
  Node* input = norm->operand(0);
  if (input->IsOp("int8.dequantize")) found.dequantize = input;
  if (IsPlainSum(*input) && (!rows || HasPlainReaders(quantize))) found.sum = input;
  absl::StatusOr<std::string> variant = VariantOf(found, kernels);
  if (variant.ok()) {
    found.variant = *std::move(variant);
  } else {
    found.why_not = std::string(variant.status().message());
  }
  return found;
}

absl::StatusOr<Node*> FuseNorm(const FusableNorm& fusable, ir::Graph& graph, passes::Remarks& remarks) {
  Node *const norm = fusable.norm, *const quantize = fusable.quantize, *const sum = fusable.sum;
  const bool rows = IsRowQuantize(*quantize);
  const std::vector<Node*> operands = OperandsOf(fusable);
  std::vector<Node*> fused = {quantize, norm};  // The last first.
  if (sum != nullptr) fused.push_back(sum);

  std::vector<std::string> sources, names;
  for (auto it = fused.rbegin(); it != fused.rend(); ++it) {
    names.push_back(absl::StrCat("%", (*it)->name()));
    for (std::string& source : (*it)->SourcesOrSelf()) sources.push_back(std::move(source));
  }
  Node* before = fused.back()->next();
  while (before == norm || before == quantize) before = before->next();

  // Uses wait without a value while the old nodes make room for their names.
  const auto detach = [&](const Node& node) {
    std::vector<ir::Use> uses;
    for (const ir::Use& use : node.uses()) {
      if (use.user == norm) continue;
      uses.push_back(use);
      use.user->set_operand(use.index, nullptr);
    }
    return uses;
  };
  const auto attach = [](const std::vector<ir::Use>& uses, Node* value) {
    for (const ir::Use& use : uses) use.user->set_operand(use.index, value);
  };
  const std::vector<ir::Use> quantized = detach(*quantize);
  const std::vector<ir::Use> summed = sum == nullptr ? std::vector<ir::Use>() : detach(*sum);
  const std::string op = FormOf(*norm), name = norm->name(), path = norm->module()->path;
  const std::string codes_name = quantize->name(), sum_name = sum == nullptr ? "" : sum->name();
  std::map<std::string, std::string> parameters = norm->module()->parameters;
  for (Node* node : fused) {
    ir::Module* module = node->module();
    graph.Erase(node);
    if (module != nullptr && module->call_sites.empty()) graph.EraseModule(module);
  }

  RETURN_IF_ERROR(graph.AddModule(path, op, fusable.attributes, std::move(parameters)).status());
  ASSIGN_OR_RETURN(Node * node, graph.AddModuleCall(name, path, operands, before));
  node->AddSources(sources);
  const auto result = [&](const std::string& wish, size_t index) {
    return graph.AddFunction(wish, "getitem", {node}, {{"index", static_cast<int64_t>(index)}}, before);
  };
  if (rows || sum == nullptr) {
    attach(quantized, node);
  } else {
    ASSIGN_OR_RETURN(Node * codes, result(codes_name, 0));
    attach(quantized, codes);
  }
  if (!summed.empty()) {
    ASSIGN_OR_RETURN(Node * value, result(sum_name, node->type().elements().size() - 1));
    attach(summed, value);
  }
  if (fusable.dequantize != nullptr && fusable.dequantize->num_uses() == 0) {
    ir::Module* module = fusable.dequantize->module();
    names.insert(names.begin(), absl::StrCat("%", fusable.dequantize->name()));
    graph.Erase(fusable.dequantize);
    if (module != nullptr && module->call_sites.empty()) graph.EraseModule(module);
  }
  const std::string last = names.back();
  names.pop_back();
  remarks.Applied(*node,
                  absl::StrCat(absl::StrJoin(names, ", "), " and ", last, " as ", op, ", kernel ", fusable.variant));
  return node;
}

}  // namespace fuselage::int8_fusion

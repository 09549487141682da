#include "passes/int8_fusion/norms.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/match/sharing.h"
#include "passes/module_call/module_call.h"

namespace fuselage::int8_fusion {
namespace {

using ir::Node;

bool IsRowQuantize(const Node& node) { return node.IsOp("dynamic_quantize_symmetric"); }

std::string FormOf(const Node& norm) { return absl::StrCat("int8.", norm.op()->name); }

// add(x, r) of types that are equal in every batch, whose sum readers can have from a tuple.
bool IsPlainSum(const Node& node, const match::BatchFollowers& followers) {
  if (!node.IsOp("add") || (node.module() == nullptr && node.target() != "add")) return false;
  return node.attribute("alpha").as_float() == 1 && node.attribute("activation").as_string() == "none" &&
         node.operand(0)->type() == node.type() && node.operand(1)->type() == node.type() &&
         followers.Contain(*node.operand(0)) && followers.Contain(*node.operand(1));
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

module_call::Call FusedCall(const FusableNorm& fusable) {
  return {FormOf(*fusable.norm), fusable.attributes, fusable.norm->module()->parameters, OperandsOf(fusable)};
}

// The readers of a value, to be given another one under its name.
struct Readers {
  std::string name;
  std::vector<ir::Use> uses;
};

// Erases `node`, whose readers wait for another value.
Readers EraseBelowReaders(Node* node, ir::Graph& graph) {
  Readers readers = {node->name(), module_call::Detach(*node)};
  module_call::EraseWithModule(node, graph);
  return readers;
}

// Gives the readers element `index` of the tuple `fused`.
absl::Status AttachToElement(const Readers& readers, Node* fused, int64_t index, Node* before) {
  ASSIGN_OR_RETURN(Node * element,
                   fused->graph().AddFunction(readers.name, "getitem", {fused}, {{"index", index}}, before));
  module_call::Attach(readers.uses, element);
  return absl::OkStatus();
}

}  // namespace

FusableNorm FusableNormAt(Node* norm, const match::BatchFollowers& followers, const kernels::KernelRegistry& kernels) {
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
  if (IsPlainSum(*input, followers) && (!rows || HasPlainReaders(quantize))) found.sum = input;
  absl::StatusOr<module_call::Accepted> accepted = module_call::Ask(FusedCall(found), norm->graph(), kernels);
  if (accepted.ok()) {
    found.variant = std::move(accepted->variant);
  } else {
    found.why_not = std::string(accepted.status().message());
  }
  return found;
}

absl::StatusOr<Node*> FuseNorm(const FusableNorm& fusable, ir::Graph& graph, passes::Remarks& remarks) {
  Node *const norm = fusable.norm, *const quantize = fusable.quantize, *const sum = fusable.sum;
  const bool codes_alone = sum == nullptr, rows = IsRowQuantize(*quantize);
  std::vector<std::string> sources, names;
  for (const Node* node : std::initializer_list<const Node*>{sum, norm, quantize}) {
    if (node == nullptr) continue;
    names.push_back(absl::StrCat("%", node->name()));
    for (std::string& source : node->SourcesOrSelf()) sources.push_back(std::move(source));
  }
  Node* before = (codes_alone ? norm : sum)->next();
  while (before == norm || before == quantize) before = before->next();

  module_call::Call call = FusedCall(fusable);
  const std::string name = norm->name(), path = norm->module()->path;
  const Readers of_codes = EraseBelowReaders(quantize, graph);
  module_call::EraseWithModule(norm, graph);
  const Readers of_sum = codes_alone ? Readers() : EraseBelowReaders(sum, graph);
  RETURN_IF_ERROR(graph.AddModule(path, call.op, std::move(call.attributes), std::move(call.parameters)).status());
  ASSIGN_OR_RETURN(Node * node, graph.AddModuleCall(name, path, std::move(call.operands), before));
  node->AddSources(sources);
  if (codes_alone || rows) {  // A tuple of rows begins as the quantize's.
    module_call::Attach(of_codes.uses, node);
  } else {
    RETURN_IF_ERROR(AttachToElement(of_codes, node, 0, before));
  }
  if (!of_sum.uses.empty()) {
    const int64_t last = static_cast<int64_t>(node->type().elements().size()) - 1;
    RETURN_IF_ERROR(AttachToElement(of_sum, node, last, before));
  }
  if (fusable.dequantize != nullptr && fusable.dequantize->num_uses() == 0) {
    names.insert(names.begin(), absl::StrCat("%", fusable.dequantize->name()));
    module_call::EraseWithModule(fusable.dequantize, graph);
  }
  const std::string last = names.back();
  names.pop_back();
  remarks.Applied(*node, absl::StrCat(absl::StrJoin(names, ", "), " and ", last, " as ", node->op()->name, ", kernel ",
                                      fusable.variant));
  return node;
}

}  // namespace fuselage::int8_fusion

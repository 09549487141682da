#include "passes/normalize/normalize.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/match/in_place.h"
#include "ir/match/sharing.h"
#include "passes/normalize/constants.h"
#include "passes/normalize/rules.h"

namespace fuselage::normalize {
namespace {

using ir::Node;
using ir::NodeKind;
using passes::Remarks;

// Why a function or method call of an op with a module form cannot be one; empty where it can.
std::string WhyNoModule(const Node& node) {
  const ir::OpSchema& op = *node.op();
  const auto is_integer = [](const TensorType& t) { return !IsFloat(t.dtype) && !t.quant; };
  if (op.elementwise && node.type().is_tensor() && is_integer(node.tensor_type())) {
    return absl::StrCat("arithmetic on ", DTypeName(node.tensor_type().dtype), " is no layer");
  }
  for (int i = 0; i < node.num_operands(); ++i) {
    const ir::OperandSpec& spec = op.operands[std::min<size_t>(i, op.operands.size() - 1)];
    if (!spec.parameter || node.operand(i) == nullptr || IsConstant(*node.operand(i))) continue;
    return absl::StrCat("its ", spec.name, " is computed by %", node.operand(i)->name());
  }
  return "";
}

// "layer1.0.conv1" for the parameter "layer1.0.conv1.weight".
std::string PathFromWeight(absl::string_view parameter) {
  for (absl::string_view suffix : {"_quantized", ".weight"}) {
    if (absl::EndsWith(parameter, suffix)) parameter.remove_suffix(suffix.size());
  }
  return std::string(parameter);
}

// One walk over a graph.
class Walk {
 public:
  Walk(const NormalizeOptions& options, ir::Graph& graph, Remarks& remarks)
      : skipped_(options.skip_ops().begin(), options.skip_ops().end()),
        graph_(graph),
        remarks_(remarks),
        parameters_(graph) {}

  absl::StatusOr<bool> Run() {
    ASSIGN_OR_RETURN(bool changed, Unshare());
    for (Node* node : graph_.Snapshot()) {
      visited_.insert(node);
      ASSIGN_OR_RETURN(const bool rewritten, Visit(node));
      changed |= rewritten;
    }
    return changed;
  }

 private:
  absl::StatusOr<bool> Visit(Node* node) {
    if (!node->is_call() || skipped_.contains(node->op()->name)) return false;
    if (node->kind() != NodeKind::kCallModule && match::IsInPlace(node->target())) {
      const std::string why = match::WhyMutationIsSeen(*node, [this](const Node& n) { return !visited_.contains(&n); });
      if (!why.empty()) {
        remarks_.Missed(*node, absl::StrCat("stays in place: ", why));
        return false;
      }
    }
    if (IsNoOp(*node)) {
      remarks_.Applied(*node, absl::StrCat("removed: ", node->op()->name, " is its input"));
      node->ReplaceAllUsesWith(node->operand(0));
      Erase(node);
      return true;
    }
    if (node->IsOp("dropout")) remarks_.Missed(*node, "stays: dropout in training mode");
    ASSIGN_OR_RETURN(std::vector<NewCall> calls, Simplified(*node, remarks_));
    if (!calls.empty()) return ReplaceBy(node, std::move(calls));
    ASSIGN_OR_RETURN(const bool merged, MergeBias(node));
    if (merged) return true;
    if (!node->op()->module_form) return ToCanonicalFunction(node);
    return node->kind() == NodeKind::kCallModule ? false : ToModule(node);
  }

  // A module without parameters that several nodes call => one for each.
  absl::StatusOr<bool> Unshare() {
    HashSet<const ir::Module*> called;
    bool changed = false;
    for (Node* node : graph_.Snapshot()) {
      const ir::Module* module = node->module();
      if (module == nullptr || !module->parameters.empty() || !module->op->module_form) continue;
      if (skipped_.contains(module->op->name) || called.insert(module).second) continue;
      ASSIGN_OR_RETURN(const ir::Module* own, graph_.AddModule(graph_.UniqueModulePath(node->name()), module->op->name,
                                                               module->attributes, {}));
      ASSIGN_OR_RETURN(Node * call, graph_.AddModuleCall(node->name(), own->path, node->operands(), node));
      remarks_.Applied(*node, absl::StrCat("calls @", own->path, ", a module of its own, in place of @", module->path));
      graph_.Replace(node, call);
      changed = true;
    }
    return changed;
  }

  absl::StatusOr<bool> ToModule(Node* node) {
    const std::string why = WhyNoModule(*node);
    if (!why.empty()) {
      remarks_.Missed(*node, absl::StrCat("no module: ", why));
      return false;
    }
    NewCall call{node->op()->name, {}, {}, node->attributes()};
    for (int i = 0; i < node->num_operands(); ++i) {
      const ir::OperandSpec& spec = node->op()->operands[std::min<size_t>(i, node->op()->operands.size() - 1)];
      Node* operand = node->operand(i);
      if (!spec.parameter) {
        call.operands.push_back(operand);
      } else if (operand != nullptr) {
        ASSIGN_OR_RETURN(Constant constant, ConstantOf(*operand));
        call.parameters.emplace_back(spec.name, std::move(constant));
      }
    }
    return ReplaceBy(node, {std::move(call)});
  }

  absl::StatusOr<bool> ToCanonicalFunction(Node* node) {
    if (node->kind() == NodeKind::kCallFunction && node->target() == node->op()->name) return false;
    if (node->module() != nullptr && !node->module()->parameters.empty()) return false;
    remarks_.Applied(*node, absl::StrCat(node->target(), " becomes the function ", node->op()->name));
    ASSIGN_OR_RETURN(Node * function,
                     graph_.AddFunction(node->name(), node->op()->name, node->operands(), node->attributes(), node));
    Replace(node, function);
    return true;
  }

  // `node` calls a module of its own, which can become what it is replaced by.
  bool CanUpdate(const Node& node, const std::vector<NewCall>& calls) const {
    return node.module() != nullptr && node.module()->parameters.empty() && node.module()->call_sites.size() == 1 &&
           calls.size() == 1 && calls[0].parameters.empty() && calls[0].operands == node.operands() &&
           graph_.ops().FindOrNull(calls[0].op)->module_form;
  }

  absl::StatusOr<bool> ReplaceBy(Node* node, std::vector<NewCall> calls) {
    if (CanUpdate(*node, calls)) {
      RETURN_IF_ERROR(graph_.UpdateModule(node->module(), calls[0].op, calls[0].attributes, {}));
      remarks_.Applied(*node, absl::StrCat("becomes ", calls[0].op, " (module @", node->module()->path, ")"));
      return true;
    }
    Node* last = nullptr;
    for (NewCall& call : calls) {
      if (last != nullptr) {
        last->AddSources(node->SourcesOrSelf());
        call.operands = {last};
      }
      ASSIGN_OR_RETURN(last, Add(*node, call));
      visited_.insert(last);
    }
    const std::string as = last->module() != nullptr ? absl::StrCat(" (module @", last->module()->path, ")") : "";
    remarks_.Applied(*node, absl::StrCat("becomes ", calls[0].op, as));
    Replace(node, last);
    return true;
  }

  // A call in front of `node`; of a new module where the op has that form.
  absl::StatusOr<Node*> Add(Node& node, const NewCall& call) {
    const ir::OpSchema* op = graph_.ops().FindOrNull(call.op);
    if (!op->module_form) return graph_.AddFunction(node.name(), call.op, call.operands, call.attributes, &node);
    const std::string path = Path(node, call);
    std::map<std::string, std::string> parameters;
    for (const auto& [operand, constant] : call.parameters) {
      parameters[operand] = parameters_.Intern(constant, absl::StrCat(path, ".", operand));
    }
    ASSIGN_OR_RETURN(const ir::Module* module, graph_.AddModule(path, call.op, call.attributes, std::move(parameters)));
    return graph_.AddModuleCall(node.name(), module->path, call.operands, &node);
  }

  std::string Path(const Node& node, const NewCall& call) const {
    for (const auto& [operand, constant] : call.parameters) {
      if (operand != "weight") continue;
      const std::string path = PathFromWeight(constant.origin);
      if (path != constant.origin && graph_.FindModuleOrNull(path) == nullptr) return path;
    }
    return graph_.UniqueModulePath(node.name());
  }

  // add(linear(x), constant [out]) => linear(x) with a bias. The constant may have leading dimensions of 1.
  absl::StatusOr<bool> MergeBias(Node* node) {
    if (!node->IsOp("add") || node->attribute("activation").as_string() != "none") return false;
    const auto is_linear = [](const Node* n) { return n->IsOp("linear") && n->kind() == NodeKind::kCallModule; };
    const int side = is_linear(node->operand(0)) ? 0 : 1;
    Node* linear = node->operand(side);
    const Node& other = *node->operand(1 - side);
    if (!is_linear(linear) || !IsConstant(other) || node->type() != linear->type()) return false;

    const int64_t columns = linear->tensor_type().shape.back();
    const TensorType& type = other.tensor_type();
    const double alpha = node->attribute("alpha").as_float();
    std::string why = match::SharedBesides(*linear, *node);
    if (alpha != 1) why = absl::StrCat("alpha=", alpha);
    if (linear->module()->parameters.count("bias") > 0) why = absl::StrCat("%", linear->name(), " has a bias already");
    if (linear->attribute("activation").as_string() != "none") {
      why = absl::StrCat("%", linear->name(), " has an activation");
    }
    if (type.dtype != DType::kF32 || type.shape.empty() || type.shape.back() != columns ||
        type.num_elements() != columns) {
      why = absl::StrCat("%", other.name(), " is not one value per column");
    }
    if (!why.empty()) {
      remarks_.Missed(*node, absl::StrCat("no bias of %", linear->name(), ": ", why));
      return false;
    }
    ASSIGN_OR_RETURN(Constant bias, ConstantOf(other));
    if (bias.tensor->dtype() == DType::kF32) bias = AsVector(bias, columns);
    ir::Module* module = linear->module();
    std::map<std::string, std::string> parameters = module->parameters;
    parameters["bias"] = parameters_.Intern(bias, absl::StrCat(module->path, ".bias"));
    RETURN_IF_ERROR(graph_.UpdateModule(module, "linear", module->attributes, std::move(parameters)));
    remarks_.Applied(*node, absl::StrCat("becomes the bias of %", linear->name()));
    linear->AddSources(linear->SourcesOrSelf());
    linear->AddSources(node->SourcesOrSelf());
    node->ReplaceAllUsesWith(linear);
    Erase(node);
    return true;
  }

  void Replace(Node* node, Node* replacement) {
    visited_.erase(node);
    visited_.insert(replacement);
    graph_.Replace(node, replacement);
  }
  void Erase(Node* node) {
    visited_.erase(node);
    graph_.Erase(node);
  }

  const HashSet<std::string> skipped_;
  ir::Graph& graph_;
  Remarks& remarks_;
  ParameterTable parameters_;
  HashSet<const Node*> visited_;  // And what replaced them: nodes in front of the walk are not in it.
};

}  // namespace

absl::StatusOr<bool> Normalize::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  for (const std::string& op : options_.skip_ops()) {
    if (graph.ops().FindOrNull(op) == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("skip_ops: there is no op '", op, "'"));
    }
  }
  return Walk(options_, graph, remarks).Run();
}

absl::Status Normalize::Ensures(const ir::Graph& graph) const {
  const HashSet<std::string> skipped(options_.skip_ops().begin(), options_.skip_ops().end());
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->is_call() || node->kind() == NodeKind::kCallModule || !node->op()->module_form) continue;
    if (skipped.contains(node->op()->name) || match::IsInPlace(node->target()) || !WhyNoModule(*node).empty()) continue;
    return absl::InternalError(absl::StrCat("%", node->name(), ": ", NodeKindName(node->kind()), " ", node->target(),
                                            " remains, wanted a module"));
  }
  return absl::OkStatus();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<NormalizeOptions>([](const NormalizeOptions& options, const passes::PassEnvironment&) {
    return std::make_unique<Normalize>(options);
  });
}

}  // namespace fuselage::normalize

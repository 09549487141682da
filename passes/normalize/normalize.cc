#include "passes/normalize/normalize.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ir/base/hash_map.h"
#include "ir/match/in_place.h"
#include "ir/match/sharing.h"
#include "passes/normalize/branches.h"
#include "passes/normalize/constants.h"
#include "passes/normalize/groups.h"
#include "passes/normalize/lookup.h"
#include "passes/normalize/new_nodes.h"
#include "passes/normalize/one_row.h"
#include "passes/normalize/padding.h"
#include "passes/normalize/patterns.h"
#include "passes/normalize/rules.h"
#include "passes/normalize/scores.h"
#include "passes/rewrite/apply.h"
#include "passes/rewrite/matcher.h"

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
  for (const ir::Argument& argument : node.arguments()) {
    if (!argument.is_computed_parameter() || IsConstant(*argument.value)) continue;
    return absl::StrCat("its ", argument.spec->name, " is computed by %", argument.value->name());
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

// What a constant that follows an op becomes: a parameter of the op.
struct Merge {
  absl::string_view user, op, parameter;
};
constexpr Merge kMerges[] = {{"add", "linear", "bias"},       {"add", "layer_norm", "bias"},
                             {"add", "group_norm", "bias"},   {"mul", "layer_norm", "weight"},
                             {"mul", "group_norm", "weight"}, {"mul", "rms_norm", "weight"}};

// Does the constant have one value for each of the parameter's, and leave the shape of `call` as it is?
bool FitsParameter(const TensorType& constant, const Shape& parameter) {
  const int leading = constant.rank() - static_cast<int>(parameter.size());
  if (constant.dtype != DType::kF32 || leading < 0) return false;
  const auto own = constant.shape.begin() + leading;
  return std::equal(parameter.begin(), parameter.end(), own) &&
         std::all_of(constant.shape.begin(), own, [](int64_t size) { return size == 1; });
}

// One walk over a graph.
class Walk {
 public:
  Walk(const NormalizeOptions& options, std::vector<rewrite::Rule> patterns, ir::Graph& graph, Remarks& remarks)
      : skipped_(options.skip_ops().begin(), options.skip_ops().end()),
        patterns_(std::move(patterns)),
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
    bool pooled = false;
    for (Node* node : graph_.Snapshot()) {  // Those means that no norm has taken, and what is behind them.
      if (node->IsOp("mean") && !skipped_.contains("mean")) {
        ASSIGN_OR_RETURN(std::vector<NewCall> calls, MeanToPool(*node));
        if (calls.empty()) continue;
        ASSIGN_OR_RETURN(const std::vector<Node*> added, ReplaceBy(node, std::move(calls)));
        ASSIGN_OR_RETURN(pooled, Visited(added));
      } else if (pooled) {
        RETURN_IF_ERROR(Visit(node).status());
      }
    }
    changed |= pooled;
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
    if (Node* same = SameOrNull(*node); same != nullptr) {
      const bool is_input = same == node->operand(0);
      remarks_.Applied(*node, absl::StrCat("removed: ", node->op()->name, " is ",
                                           is_input ? "its input" : absl::StrCat("%", same->name(), " again")));
      Node* operand = node->operand(0);
      node->ReplaceAllUsesWith(same);
      Erase(node);
      EraseUnused(operand);
      return true;
    }
    if (node->IsOp("dropout")) remarks_.Missed(*node, "stays: dropout in training mode");
    ASSIGN_OR_RETURN(std::vector<NewCall> calls, Simplified(*node, remarks_));
    if (!calls.empty()) {
      ASSIGN_OR_RETURN(const std::vector<Node*> simple, ReplaceBy(node, std::move(calls)));
      return Visited(simple);
    }
    for (const auto rewrite : {&Walk::MergeConstant, &Walk::FoldPad, &Walk::ReplacePattern, &Walk::ReplaceByNodes,
                               &Walk::ReplaceByRule, &Walk::SumToAdds}) {
      ASSIGN_OR_RETURN(const bool rewritten, (this->*rewrite)(node));
      if (rewritten) return true;
    }
    if (!node->op()->module_form) return ToCanonicalFunction(node);
    return node->kind() == NodeKind::kCallModule ? false : ToModule(node);
  }

  // True, once the new `nodes` are as the pass wants them too. Each reads the one in front alone, which may go
  // meanwhile.
  absl::StatusOr<bool> Visited(absl::Span<Node* const> nodes) {
    for (Node* node : nodes) RETURN_IF_ERROR(Visit(node).status());
    return true;
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
    for (const ir::Argument& argument : node->arguments()) {
      if (!argument.spec->parameter) {
        call.operands.push_back(argument.value);
      } else if (!argument.absent()) {
        ASSIGN_OR_RETURN(Constant constant, ConstantOf(*argument.value));
        call.parameters.emplace_back(argument.spec->name, std::move(constant));
      }
    }
    ASSIGN_OR_RETURN(const std::vector<Node*> module, ReplaceBy(node, {std::move(call)}));
    return Visited(module);
  }

  absl::StatusOr<bool> ToCanonicalFunction(Node* node) {
    if (node->kind() == NodeKind::kCallFunction && node->target() == node->op()->name) return false;
    if (node->module() != nullptr && !node->module()->parameters.empty()) return false;
    remarks_.Applied(*node, absl::StrCat(node->target(), " becomes the function ", node->op()->name));
    ASSIGN_OR_RETURN(Node * function,
                     graph_.AddFunction(node->name(), node->op()->name, node->operands(), node->attributes(), node));
    Replace(node, function);
    return Visited({function});  // Patterns take no call in place.
  }

  // `node` calls a module of its own, which can become what it is replaced by.
  bool CanUpdate(const Node& node, const std::vector<NewCall>& calls) const {
    return node.module() != nullptr && node.module()->parameters.empty() && node.module()->call_sites.size() == 1 &&
           calls.size() == 1 && calls[0].parameters.empty() && calls[0].operands == node.operands() &&
           graph_.ops().FindOrNull(calls[0].op)->module_form;
  }

  // Returns what computes the result now, the result last.
  absl::StatusOr<std::vector<Node*>> ReplaceBy(Node* node, std::vector<NewCall> calls) {
    if (CanUpdate(*node, calls)) {
      RETURN_IF_ERROR(graph_.UpdateModule(node->module(), calls[0].op, calls[0].attributes, {}));
      remarks_.Applied(*node, absl::StrCat("becomes ", calls[0].op, " (module @", node->module()->path, ")"));
      return std::vector<Node*>{node};
    }
    std::vector<Node*> added;
    for (NewCall& call : calls) {
      if (!added.empty()) {
        added.back()->AddSources(node->SourcesOrSelf());
        call.operands.insert(call.operands.begin(), added.back());
      }
      ASSIGN_OR_RETURN(added.emplace_back(), Add(*node, call));
      visited_.insert(added.back());
    }
    const auto layer =
        std::find_if(added.begin(), added.end(), [](const Node* call) { return call->module() != nullptr; });
    const std::string as = layer != added.end() ? absl::StrCat(" (module @", (*layer)->module()->path, ")") : "";
    remarks_.Applied(*node, absl::StrCat("becomes ", calls[layer == added.end() ? 0 : layer - added.begin()].op, as));
    const std::vector<Node*> operands = node->operands();
    ir::Module* own = node->module() != nullptr && node->module()->call_sites.size() == 1 ? node->module() : nullptr;
    Replace(node, added.back());
    for (Node* operand : operands) EraseUnused(operand);
    if (own != nullptr && layer != added.end()) {  // Its name stays what it was.
      const std::string path = own->path;
      graph_.EraseModule(own);
      graph_.RenameModule((*layer)->module(), path);
    }
    return added;
  }

  // A call in front of `node`; of a new module where the op has that form.
  absl::StatusOr<Node*> Add(Node& node, const NewCall& call) {
    const ir::OpSchema* op = graph_.ops().FindOrNull(call.op);
    if (!op->module_form) return graph_.AddFunction(node.name(), call.op, call.operands, call.attributes, &node);
    const std::string path = Path(node, call);
    const std::string& owner = node.module() != nullptr ? node.module()->path : path;
    std::map<std::string, std::string> parameters;
    for (const auto& [operand, constant] : call.parameters) {
      parameters[operand] = parameters_.Intern(constant, absl::StrCat(owner, ".", operand));
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

  // add(linear(x), constant [out]) => linear(x) with a bias, and the like (kMerges). The constant may have leading
  // dimensions of 1; a norm's results may be brought to the front before (BroughtToFront), each channel of the constant
  // with them.
  absl::StatusOr<bool> MergeConstant(Node* node) {
    for (const Merge& merge : kMerges) {
      if (!node->IsOp(merge.user)) continue;
      for (const int side : {0, 1}) {
        Node* const value = node->operand(side);
        Node* const call = BroughtToFront(*value) ? value->operand(0) : value;
        const Node& constant = *node->operand(1 - side);
        if (!call->IsOp(merge.op) || call->kind() != NodeKind::kCallModule || !IsConstant(constant)) continue;
        if (node->type() != value->type()) continue;
        if (node->IsOp("add") && node->attribute("activation").as_string() != "none") continue;
        const std::string why = WhyNoParameter(*node, *call, *value, constant, merge);
        if (why.empty()) return MergeInto(node, call, value, constant, merge);
        remarks_.Missed(*node, absl::StrCat("no ", merge.parameter, " of %", call->name(), ": ", why));
        return false;
      }
    }
    return false;
  }

  // A norm's last axis becomes the channels of an image.
  static bool BroughtToFront(const Node& value) {
    return value.is_call() && value.IsOp("permute") && value.operand(0)->IsOp("layer_norm") &&
           value.attribute("dims").as_ints() == std::vector<int64_t>{0, 3, 1, 2};
  }

  static Shape ShapeOfParameter(const Node& call) {
    if (call.IsOp("linear")) return {call.tensor_type().shape.back()};
    if (call.IsOp("group_norm")) return {call.tensor_type().shape[1]};
    return call.attribute("normalized_shape").as_ints();
  }

  // As it is broadcast to the result: channels have axes behind them.
  static Shape ShapeOfConstant(const Node& call, const Node& value) {
    Shape shape = ShapeOfParameter(call);
    if (call.IsOp("group_norm") || &call != &value) shape.resize(call.tensor_type().rank() - shape.size(), 1);
    return shape;
  }

  // `value`: the call's, or that brought to the front.
  static std::string WhyNoParameter(const Node& node, const Node& call, const Node& value, const Node& constant,
                                    const Merge& merge) {
    const std::map<std::string, std::string>& parameters = call.module()->parameters;
    if (&call != &value && ShapeOfParameter(call).size() != 1) {
      return absl::StrCat("%", call.name(), " is of several axes");
    }
    if (!FitsParameter(constant.tensor_type(), ShapeOfConstant(call, value))) {
      const bool one_dimensional = ShapeOfParameter(call).size() == 1;
      return absl::StrCat("%", constant.name(), " is not one value per ",
                          call.IsOp("group_norm") ? "channel"
                          : one_dimensional       ? "column"
                                                  : "element");
    }
    const bool as_it_is = call.IsOp("linear") && constant.tensor_type().rank() == 1;
    if (constant.kind() != NodeKind::kGetAttr && !as_it_is) return absl::StrCat("%", constant.name(), " has codes");
    if (call.op()->FindAttributeOrNull("activation") != nullptr && call.attribute("activation").as_string() != "none") {
      return absl::StrCat("%", call.name(), " has an activation");
    }
    for (absl::string_view later : {merge.parameter, absl::string_view("bias")}) {  // The weight comes before the bias.
      if (parameters.count(std::string(later)) > 0) return absl::StrCat("%", call.name(), " has a ", later, " already");
    }
    if (node.IsOp("add") && node.attribute("alpha").as_float() != 1) {
      return absl::StrCat("alpha=", node.attribute("alpha").as_float());
    }
    const std::string shared = &call == &value ? "" : match::SharedBesides(call, value);
    return shared.empty() ? match::SharedBesides(value, node) : shared;
  }

  absl::StatusOr<bool> MergeInto(Node* node, Node* call, Node* value, const Node& operand, const Merge& merge) {
    ASSIGN_OR_RETURN(Constant constant, ConstantOf(operand));
    if (constant.tensor->dtype() == DType::kF32) constant = Reshaped(constant, ShapeOfParameter(*call));
    ir::Module* module = call->module();
    std::map<std::string, std::string> parameters = module->parameters;
    parameters[std::string(merge.parameter)] =
        parameters_.Intern(constant, absl::StrCat(module->path, ".", merge.parameter));
    RETURN_IF_ERROR(graph_.UpdateModule(module, module->op->name, module->attributes, std::move(parameters)));
    remarks_.Applied(*node, absl::StrCat("becomes the ", merge.parameter, " of %", call->name()));
    call->AddSources(call->SourcesOrSelf());
    call->AddSources(node->SourcesOrSelf());
    node->ReplaceAllUsesWith(value);
    Erase(node);
    return true;
  }

  // What is several nodes, each of which may read any before it.
  absl::StatusOr<bool> ReplaceByNodes(Node* node) {
    for (const auto rule : {AsLookup, AsAttention, OfImageAndConstants}) {
      NewNodes nodes(*node);
      ASSIGN_OR_RETURN(const bool replaced, rule(*node, nodes));
      if (!replaced) continue;
      const std::vector<Node*>& added = nodes.nodes();
      remarks_.Applied(*node, absl::StrCat("becomes ", added.back()->op()->name));
      for (Node* call : added) {
        visited_.insert(call);
        if (call != added.back() && call->is_call()) call->AddSources(node->SourcesOrSelf());
      }
      const std::vector<Node*> operands = node->operands();
      Replace(node, added.back());
      for (Node* operand : operands) EraseUnused(operand);
      return Visited(added);
    }
    return false;
  }

  // conv2d(pad(x)) => conv2d(x) that pads itself; pools too.
  absl::StatusOr<bool> FoldPad(Node* node) {
    const std::optional<AttributeMap> padded = WithPadding(*node, remarks_);
    if (!padded) return false;
    const Node* pad = node->operand(0);
    std::vector<Node*> operands = node->operands();
    operands[0] = pad->operand(0);
    if (node->module() == nullptr) {
      ASSIGN_OR_RETURN(Node * call, graph_.AddFunction(node->name(), node->op()->name, operands, *padded, node));
      call->AddSources(node->SourcesOrSelf());
      call->AddSources(pad->SourcesOrSelf());
      remarks_.Applied(*node, absl::StrCat("pads itself, in place of %", pad->name()));
      Replace(node, call);
      return Visited({call});
    }
    node->set_operand(0, operands[0]);
    ir::Module* module = node->module();
    RETURN_IF_ERROR(graph_.UpdateModule(module, module->op->name, *padded, module->parameters));
    remarks_.Applied(*node, absl::StrCat("pads itself, in place of %", pad->name()));
    node->AddSources(node->SourcesOrSelf());
    node->AddSources(pad->SourcesOrSelf());
    return Visited({node});
  }

  // What a node and those in front of it are together.
  absl::StatusOr<bool> ReplaceByRule(Node* node) {
    for (const auto rule : {OfOneRow, OfGroups, OfBranches, SumOfStack}) {
      std::vector<NewCall> calls = rule(*node);
      if (calls.empty()) continue;
      ASSIGN_OR_RETURN(const std::vector<Node*> added, ReplaceBy(node, std::move(calls)));
      return Visited(added);
    }
    return false;
  }

  absl::StatusOr<bool> SumToAdds(Node* node) {
    std::vector<NewCall> calls = SummedBranches(*node);
    if (calls.empty()) return false;
    std::vector<Node*> branches;
    for (auto slice = calls.begin() + 1; slice != calls.end(); ++slice) {
      ASSIGN_OR_RETURN(branches.emplace_back(), Add(*node, *slice));
      visited_.insert(branches.back());
      *slice = {"add", {branches.back()}, {}, {}};
    }
    if (node->attribute("keepdim").as_bool()) {
      calls.push_back({"unsqueeze", {}, {}, {{"dims", node->attribute("dims")}}});
    }
    ASSIGN_OR_RETURN(const std::vector<Node*> added, ReplaceBy(node, std::move(calls)));
    RETURN_IF_ERROR(Visited(branches).status());
    return Visited(added);
  }

  // What exporters wrote out (patterns.h) => one op.
  absl::StatusOr<bool> ReplacePattern(Node* node) {
    for (const rewrite::Rule& pattern : patterns_) {
      const std::optional<rewrite::Match> match = rewrite::FindMatch(pattern.pattern, node);
      if (!match || StaysInPlace(*match)) continue;
      ASSIGN_OR_RETURN(const std::optional<rewrite::Replacement> replacement,
                       rewrite::Apply(pattern, *match, graph_, remarks_));
      if (!replacement) continue;
      for (const Node* erased : replacement->erased) visited_.erase(erased);
      for (Node* added : replacement->added) visited_.insert(added);
      for (Node* added : replacement->added) RETURN_IF_ERROR(Visit(added).status());
      return true;
    }
    return false;
  }

  // An in-place call that this walk has left as it is changes a value that others read.
  static bool StaysInPlace(const rewrite::Match& match) {
    return std::any_of(match.calls.begin(), match.calls.end(), [](const Node* call) {
      return call->kind() != NodeKind::kCallModule && match::IsInPlace(call->target());
    });
  }

  void Replace(Node* node, Node* replacement) {
    visited_.erase(node);
    visited_.insert(replacement);
    graph_.Replace(node, replacement);
  }
  // Calls that nobody reads any more: to the patterns they would be readers of what they read.
  void EraseUnused(Node* node) {
    if (!visited_.contains(node)) return;  // Erased as another one's operand.
    const bool in_place = node->module() == nullptr && match::IsInPlace(node->target());
    if (!node->is_call() || node->num_uses() > 0 || in_place) return;
    const std::vector<Node*> operands = node->operands();
    Erase(node);
    for (Node* operand : operands) EraseUnused(operand);
  }
  void Erase(Node* node) {
    visited_.erase(node);
    graph_.Erase(node);
  }

  const HashSet<std::string> skipped_;
  const std::vector<rewrite::Rule> patterns_;
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
  ASSIGN_OR_RETURN(std::vector<rewrite::Rule> patterns, Patterns(graph.ops()));
  return Walk(options_, std::move(patterns), graph, remarks).Run();
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

#include "absl/strings/str_cat.h"
#include "ir/graph.h"

namespace fuselage::ir {
namespace {

absl::Status Broken(const Node& node, absl::string_view what) {
  return absl::InternalError(absl::StrCat("verifier: %", node.name(), ": ", what));
}

}  // namespace

absl::Status Graph::CheckType(const Node& node) const {
  if (node.kind_ == NodeKind::kPlaceholder) return absl::OkStatus();  // What it states is what it is.
  if (node.kind_ == NodeKind::kGetAttr && node.type_ == node.parameter_->type) return absl::OkStatus();
  absl::StatusOr<Type> type = InferType(node);
  if (!type.ok()) return Broken(node, type.status().message());
  if (*type == node.type_) return absl::OkStatus();
  return Broken(node, absl::StrCat("has type ", ToString(node.type_), ", inferred ", ToString(*type)));
}

absl::Status Graph::Verify() const {
  absl::flat_hash_set<const Node*> defined;
  absl::flat_hash_map<const Parameter*, int> parameter_uses;
  size_t call_sites = 0, calls = 0;
  defined.reserve(num_nodes_);
  parameter_uses.reserve(parameters_.size());
  int64_t uncalled = 0;
  for (const auto& [path, module] : modules_) {
    if (module->op == nullptr || ops_->FindOrNull(module->op->name) != module->op) {
      return absl::InternalError(absl::StrCat("verifier: @", path, ": its operator is not registered"));
    }
    call_sites += module->call_sites.size();
    uncalled += module->call_sites.empty();
    size_t bound = 0;
    for (const Parameter* parameter : module->operands) {
      if (parameter == nullptr) continue;
      ++bound;
      ++parameter_uses[parameter];
    }
    for (const auto& [operand, name] : module->parameters) {
      const int index = module->op->OperandIndex(operand);
      const Parameter* parameter = index < 0 ? nullptr : module->operands[index];
      if (parameter == nullptr || parameter->name != name) {
        return absl::InternalError(absl::StrCat("verifier: @", path, ": no parameter @", name, " for its ", operand));
      }
    }
    if (bound != module->parameters.size() || module->operands.size() != module->op->operands.size()) {
      return absl::InternalError(absl::StrCat("verifier: @", path, ": holds parameters that it does not name"));
    }
  }

  int64_t count = 0, dead = 0, unused = 0;
  const Node* previous = nullptr;
  for (const Node* node = first_; node != nullptr; previous = node, node = node->next_) {
    ++count;
    if (node->graph_ != this || node->previous_ != previous) return Broken(*node, "is linked wrongly");
    const auto named = nodes_by_name_.find(node->name_);
    if (named == nodes_by_name_.end() || named->second != node) return Broken(*node, "its name is not unique");
    if (output_ != nullptr && previous == output_) return Broken(*node, "comes after the output");

    for (int i = 0; i < node->num_operands(); ++i) {
      const Use& use = node->operands_[i];
      if (use.user != node || use.index != i) return Broken(*node, absl::StrCat("operand ", i, " is linked wrongly"));
      if (use.value == nullptr) continue;
      if (!defined.contains(use.value)) {
        return Broken(*node, absl::StrCat("operand %", use.value->name_, " is not defined before it"));
      }
      const Use* before = use.previous;
      const bool linked = (before != nullptr ? before->next : use.value->first_use_) == &use;
      if (!linked) return Broken(*node, absl::StrCat("is not in the use list of %", use.value->name_));
    }
    int uses = 0;
    for (const Use* use = node->first_use_; use != nullptr; use = use->next, ++uses) {
      if (use->value != node) return Broken(*node, "its use list holds a use of another value");
    }
    if (uses != node->num_uses_) return Broken(*node, "its number of uses is wrong");
    dead += uses == 0 && node->IsRemovable();

    if (node->is_call()) {
      const OpSchema* op = node->module_ != nullptr ? node->module_->op : ops_->FindOrNull(node->target_);
      if (op == nullptr || op != node->op_) return Broken(*node, absl::StrCat("unknown operator ", node->target_));
      if (node->kind_ == NodeKind::kCallModule) {
        if (node->module_->path != node->target_) return Broken(*node, "calls no module of the graph");
        if (!node->module_->call_sites.contains(node)) return Broken(*node, "its module does not know this call");
        ++calls;
      }
    } else if (node->kind_ == NodeKind::kGetAttr) {
      if (node->parameter_ == nullptr || node->parameter_->name != node->target_) {
        return Broken(*node, absl::StrCat("no parameter @", node->target_));
      }
      ++parameter_uses[node->parameter_];
    }
    RETURN_IF_ERROR(CheckType(*node));
    for (const TensorType& element : node->type_.elements()) {
      if (!element.quant) continue;
      absl::Status status = CheckQuantParams(*element.quant, element.dtype, element.shape);
      if (!status.ok()) return Broken(*node, status.message());
    }
    defined.insert(node);
  }

  if (previous != last_ || count != num_nodes_) return absl::InternalError("verifier: the list of nodes is broken");
  if (output_ == nullptr) return absl::InternalError(absl::StrCat("verifier: graph @", name_, " has no output"));
  // Each call is among its module's call sites: as many of the one as of the other, and they are the same.
  if (calls != call_sites) {
    return absl::InternalError(
        absl::StrCat("verifier: the modules have ", call_sites, " call sites, the graph has ", calls, " calls"));
  }
  if (modules_by_path_.size() != modules_.size() || parameters_by_name_.size() != parameters_.size() ||
      static_cast<int64_t>(nodes_by_name_.size()) != num_nodes_) {
    return absl::InternalError("verifier: the tables of names are broken");
  }
  for (const auto& [name, parameter] : parameters_) {
    unused += parameter.uses == 0;
    if (const int found = parameter_uses[&parameter]; found != parameter.uses) {
      return absl::InternalError(
          absl::StrCat("verifier: @", name, ": ", parameter.uses, " uses counted, ", found, " found"));
    }
  }
  if (dead != num_dead_nodes_ || uncalled != num_uncalled_modules_ || unused != num_unused_parameters_) {
    return absl::InternalError(absl::StrCat("verifier: ", dead, " dead nodes, ", uncalled, " uncalled modules and ",
                                            unused, " unused parameters found, counted were ", num_dead_nodes_, ", ",
                                            num_uncalled_modules_, " and ", num_unused_parameters_));
  }
  return absl::OkStatus();
}

}  // namespace fuselage::ir

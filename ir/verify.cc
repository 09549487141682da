#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "ir/hasher.h"

namespace fuselage::ir {
namespace {

absl::Status Broken(const Node& node, absl::string_view what) {
  return absl::InternalError(absl::StrCat("verifier: %", node.name(), ": ", what));
}
absl::Status Broken(const Module& module, absl::string_view what) {
  return absl::InternalError(absl::StrCat("verifier: @", module.path, ": ", what));
}
absl::Status Broken(absl::string_view what) { return absl::InternalError(absl::StrCat("verifier: ", what)); }

}  // namespace

// One walk over the nodes; modules and parameters are visited from the nodes that name them, while they are near. A
// graph may be larger than the caches, so each piece of memory is looked at once.
class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), first_visit_(graph.last_visit_ + 1) {}

  absl::Status Run() {
    hasher_.Add(absl::string_view(graph_.name_));
    const Node* previous = nullptr;
    for (const Node* node = graph_.first_; node != nullptr; previous = node, node = node->next_) {
      if (node->graph_ != &graph_ || node->previous_ != previous) return Broken(*node, "is linked wrongly");
      if (graph_.output_ != nullptr && previous == graph_.output_) return Broken(*node, "comes after the output");
      node->visit_ = ++graph_.last_visit_;
      RETURN_IF_ERROR(CheckLinks(*node));
      RETURN_IF_ERROR(CheckTarget(*node));
      RETURN_IF_ERROR(CheckType(*node));
      AddToFingerprint(*node);
      ++nodes_;
    }
    if (previous != graph_.last_ || nodes_ != graph_.num_nodes_) return Broken("the list of nodes is broken");
    if (graph_.output_ == nullptr) return Broken(absl::StrCat("graph @", graph_.name_, " has no output"));
    if (graph_.output_->num_operands() == 0) return Broken(*graph_.output_, "has no operand, wanted at least one");
    RETURN_IF_ERROR(VisitUnreached());
    return CheckTables();
  }

  uint64_t fingerprint() const {
    Hasher all = hasher_;
    all.Add(tables_);
    return all.value();
  }

 private:
  bool IsVisited(int64_t visit) const { return visit >= first_visit_; }

  absl::Status CheckLinks(const Node& node) {
    const auto named = graph_.nodes_by_name_.find(node.name_);
    if (named == graph_.nodes_by_name_.end() || named->second != &node) return Broken(node, "its name is not unique");
    for (int i = 0; i < node.num_operands(); ++i) {
      const Use& use = node.operands_[i];
      if (use.user != &node || use.index != i) return Broken(node, absl::StrCat("operand ", i, " is linked wrongly"));
      if (use.value == nullptr) continue;
      if (use.value == &node || !IsVisited(use.value->visit_)) {
        return Broken(node, absl::StrCat("operand %", use.value->name_, " is not defined before it"));
      }
      const Use* before = use.previous;
      const bool linked = (before != nullptr ? before->next : use.value->first_use_) == &use;
      if (!linked) return Broken(node, absl::StrCat("is not in the use list of %", use.value->name_));
    }
    int uses = 0;
    for (const Use* use = node.first_use_; use != nullptr; use = use->next, ++uses) {
      if (use->value != &node) return Broken(node, "its use list holds a use of another value");
    }
    if (uses != node.num_uses_) return Broken(node, "its number of uses is wrong");
    dead_ += uses == 0 && node.IsRemovable();
    return absl::OkStatus();
  }

  absl::Status CheckTarget(const Node& node) {
    if (node.kind_ == NodeKind::kGetAttr) {
      if (node.parameter_ == nullptr || node.parameter_->name != node.target_) {
        return Broken(node, absl::StrCat("no parameter @", node.target_));
      }
      Visit(*node.parameter_);
      return absl::OkStatus();
    }
    if (!node.is_call()) return absl::OkStatus();
    if (node.kind_ != NodeKind::kCallModule) {
      const OpSchema* op = graph_.ops_->FindOrNull(node.target_);
      if (op != nullptr && op == node.op_) return absl::OkStatus();
      return Broken(node, absl::StrCat("unknown operator ", node.target_));
    }
    const Module* module = node.module_;
    if (module == nullptr || module->path != node.target_) return Broken(node, "calls no module of the graph");
    if (module->op != node.op_) return Broken(node, absl::StrCat("unknown operator ", node.target_));
    if (!module->call_sites.contains(&node)) return Broken(node, "its module does not know this call");
    ++calls_;
    return IsVisited(module->visit) ? absl::OkStatus() : Visit(*module);
  }

  absl::Status Visit(const Module& module) {
    module.visit = first_visit_;
    ++modules_;
    call_sites_ += module.call_sites.size();
    uncalled_ += module.call_sites.empty();
    if (module.op == nullptr || graph_.ops_->FindOrNull(module.op->name) != module.op) {
      return Broken(module, "its operator is not registered");
    }
    size_t bound = 0;
    for (const Parameter* parameter : module.operands) {
      if (parameter == nullptr) continue;
      ++bound;
      Visit(*parameter);
    }
    Hasher hasher;
    hasher.Add(absl::string_view(module.path));
    hasher.Add(absl::string_view(module.op->name));
    hasher.Add(module.attributes);
    hasher.Add(uint64_t{module.parameters.size()});
    for (const auto& [operand, name] : module.parameters) {
      const int index = module.op->OperandIndex(operand);
      const Parameter* parameter = index < 0 ? nullptr : module.operands[index];
      if (parameter == nullptr || parameter->name != name) {
        return Broken(module, absl::StrCat("no parameter @", name, " for its ", operand));
      }
      hasher.Add(absl::string_view(operand));
      hasher.Add(absl::string_view(name));
    }
    tables_ += hasher.value();
    if (bound == module.parameters.size() && module.operands.size() == module.op->operands.size()) {
      return absl::OkStatus();
    }
    return Broken(module, "holds parameters that it does not name");
  }

  void Visit(const Parameter& parameter) {
    ++found_uses_;
    if (IsVisited(parameter.visit)) {
      ++parameter.found_uses;
    } else {
      parameter.visit = first_visit_;
      parameter.found_uses = 1;
      Enter(parameter);
    }
    surplus_uses_ = surplus_uses_ || parameter.found_uses > parameter.uses;
  }

  // For each parameter once.
  void Enter(const Parameter& parameter) {
    ++parameters_;
    counted_uses_ += parameter.uses;
    Hasher hasher;
    hasher.Add(absl::string_view(parameter.name));
    hasher.Add(parameter.fingerprint);
    hasher.Add(uint64_t{parameter.seed.has_value()});
    hasher.Add(parameter.seed.value_or(0));
    tables_ += hasher.value();
  }

  // Inferred type == stated type. Calls alike in all that inference sees are inferred once.
  absl::Status CheckType(const Node& node) {
    Hasher type_hasher;
    type_hasher.Add(node.type_);
    node.type_hash_ = type_hasher.value();
    Hasher key;
    key.Add(node.type_hash_);
    key.Add(static_cast<uint64_t>(node.kind_));
    switch (node.kind_) {
      case NodeKind::kPlaceholder: break;  // What it states is what it is.
      case NodeKind::kGetAttr:
        if (node.type_ != node.parameter_->type) return CheckInferred(node);
        break;
      case NodeKind::kOutput: return CheckInferred(node);
      default:
        key.Add(reinterpret_cast<uintptr_t>(node.op_));
        for (const Use& use : node.operands_) key.Add(use.value == nullptr ? 0 : use.value->type_hash_);
        if (node.module_ != nullptr) {
          for (const Parameter* parameter : node.module_->operands) {
            Hasher parameter_type;
            if (parameter != nullptr) parameter_type.Add(parameter->type);
            key.Add(parameter_type.value());
          }
        }
        key.Add(node.attributes());
    }
    if (graph_.consistent_calls_.contains(key.value())) return absl::OkStatus();
    if (node.is_call()) RETURN_IF_ERROR(CheckInferred(node));
    for (const TensorType& element : node.type_.elements()) {
      if (!element.quant) continue;
      absl::Status status = CheckQuantParams(*element.quant, element.dtype, element.shape);
      if (!status.ok()) return Broken(node, status.message());
    }
    MakeRoom(graph_.consistent_calls_);
    graph_.consistent_calls_.insert(key.value());
    return absl::OkStatus();
  }

  absl::Status CheckInferred(const Node& node) const {
    absl::StatusOr<Type> type = graph_.InferType(node);
    if (!type.ok()) return Broken(node, type.status().message());
    if (*type == node.type_) return absl::OkStatus();
    return Broken(node, absl::StrCat("has type ", ToString(node.type_), ", inferred ", ToString(*type)));
  }

  void AddToFingerprint(const Node& node) {
    Hasher name;
    name.Add(absl::string_view(node.name_));
    node.name_hash_ = name.value();
    hasher_.Add(node.name_hash_);
    hasher_.Add(node.type_hash_);
    hasher_.Add(static_cast<uint64_t>(node.kind_));
    hasher_.Add(absl::string_view(node.target_));
    hasher_.Add(static_cast<uint64_t>(node.num_operands()));
    for (const Use& use : node.operands_) hasher_.Add(use.value == nullptr ? 0 : use.value->name_hash_);
    if (node.module_ == nullptr) hasher_.Add(node.attributes_);  // A module's are its own.
    hasher_.AddAll(node.sources_);
  }

  // Modules that nothing calls, parameters that nothing names.
  absl::Status VisitUnreached() {
    if (modules_ < graph_.modules_.size()) {
      for (const auto& [path, module] : graph_.modules_) {
        if (!IsVisited(module->visit)) RETURN_IF_ERROR(Visit(*module));
      }
    }
    if (parameters_ < graph_.parameters_.size()) {
      for (const auto& [name, parameter] : graph_.parameters_) {
        if (IsVisited(parameter.visit)) continue;
        Enter(parameter);
        ++unused_;
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckTables() const {
    // Each call is among its module's call sites: as many of the one as of the other, and they are the same.
    if (calls_ != call_sites_) {
      return Broken(absl::StrCat("the modules have ", call_sites_, " call sites, the graph has ", calls_, " calls"));
    }
    if (modules_ != graph_.modules_.size() || parameters_ != graph_.parameters_.size() ||
        graph_.modules_by_path_.size() != modules_ || graph_.parameters_by_name_.size() != parameters_ ||
        static_cast<int64_t>(graph_.nodes_by_name_.size()) != nodes_) {
      return Broken("the tables of names are broken");
    }
    // No parameter has more uses than it counts, and all together have as many: each has as many.
    if (surplus_uses_ || found_uses_ != counted_uses_) {
      return Broken(absl::StrCat("the parameters count ", counted_uses_, " uses, ", found_uses_, " were found"));
    }
    if (dead_ == graph_.num_dead_nodes_ && uncalled_ == graph_.num_uncalled_modules_ &&
        unused_ == graph_.num_unused_parameters_) {
      return absl::OkStatus();
    }
    return Broken(absl::StrCat(dead_, " dead nodes, ", uncalled_, " uncalled modules and ", unused_,
                               " unused parameters found, counted were ", graph_.num_dead_nodes_, ", ",
                               graph_.num_uncalled_modules_, " and ", graph_.num_unused_parameters_));
  }

  const Graph& graph_;
  const int64_t first_visit_;
  Hasher hasher_;        // Has seen the nodes so far, in order.
  uint64_t tables_ = 0;  // The sum of the modules' and parameters' hashes: of no order.
  int64_t nodes_ = 0, dead_ = 0, uncalled_ = 0, unused_ = 0, found_uses_ = 0, counted_uses_ = 0;
  size_t modules_ = 0, parameters_ = 0, calls_ = 0, call_sites_ = 0;
  bool surplus_uses_ = false;
};

absl::Status Graph::Verify(uint64_t* fingerprint) const {
  Verifier verifier(*this);
  RETURN_IF_ERROR(verifier.Run());
  if (fingerprint != nullptr) *fingerprint = verifier.fingerprint();
  return absl::OkStatus();
}

}  // namespace fuselage::ir

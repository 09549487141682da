#include "ir/graph.h"

#include <algorithm>

#include "ir/base/hash_map.h"

namespace fuselage::ir {

absl::string_view NodeKindName(NodeKind kind) {
  constexpr absl::string_view kNames[] = {"placeholder", "get_attr",    "call_function",
                                          "call_method", "call_module", "output"};
  return kNames[static_cast<int>(kind)];
}

std::vector<Node*> Node::operands() const {
  std::vector<Node*> values;
  values.reserve(operands_.size());
  for (const Use& use : operands_) values.push_back(use.value);
  return values;
}

std::vector<Argument> Node::arguments() const {
  std::vector<Argument> arguments;
  if (op_ == nullptr) return arguments;
  arguments.reserve(std::max(op_->operands.size(), operands_.size()));
  int next = 0;
  const auto take = [&](const OperandSpec* spec) {
    Argument& argument = arguments.emplace_back();
    argument.spec = spec;
    if (next < num_operands() && operand(next) != nullptr) {
      argument.index = next;
      argument.value = operand(next);
      argument.parameter = argument.value->parameter_;
    }
    ++next;
  };
  for (size_t i = 0; i < op_->operands.size(); ++i) {
    const OperandSpec& spec = op_->operands[i];
    if (spec.variadic) break;
    if (module_ != nullptr && spec.parameter) {
      arguments.push_back({&spec, -1, nullptr, module_->operands[i]});
    } else {
      take(&spec);
    }
  }
  // Those of the variadic one, or more than a call may have: then Infer says so.
  while (next < num_operands()) take(op_->operands.empty() ? nullptr : &op_->operands.back());
  return arguments;
}

void Node::LinkOperand(Use* use, Node* value) {
  use->value = value;
  if (value == nullptr) return;
  use->previous = value->last_use_;
  use->next = nullptr;
  (value->last_use_ != nullptr ? value->last_use_->next : value->first_use_) = use;
  value->last_use_ = use;
  if (value->num_uses_++ == 0 && value->IsRemovable()) --value->graph_->num_dead_nodes_;
}

void Node::UnlinkOperand(Use* use) {
  Node* value = use->value;
  if (value == nullptr) return;
  (use->previous != nullptr ? use->previous->next : value->first_use_) = use->next;
  (use->next != nullptr ? use->next->previous : value->last_use_) = use->previous;
  use->previous = use->next = nullptr;
  use->value = nullptr;
  if (--value->num_uses_ == 0 && value->IsRemovable()) ++value->graph_->num_dead_nodes_;
}

void Node::set_operand(int i, Node* value) {
  Use* use = &operands_[i];
  if (use->value == value) return;
  UnlinkOperand(use);
  LinkOperand(use, value);
}

const AttributeMap& Node::attributes() const { return module_ != nullptr ? module_->attributes : attributes_; }

const Attribute& Node::attribute(absl::string_view name) const {
  FUSELAGE_CHECK(op_ != nullptr);
  return OpCall(*op_, attributes()).attribute(name);
}

std::vector<Use> Node::uses() const {
  std::vector<Use> uses;
  uses.reserve(num_uses_);
  for (const Use* use = first_use_; use != nullptr; use = use->next) uses.push_back(*use);
  return uses;
}

std::vector<Node*> Node::users() const {
  std::vector<Node*> users;
  HashSet<const Node*> seen;
  for (const Use* use = first_use_; use != nullptr; use = use->next) {
    if (seen.insert(use->user).second) users.push_back(use->user);
  }
  return users;
}

Node* Node::only_user() const {
  FUSELAGE_CHECK(num_uses_ == 1);
  return first_use_->user;
}

void Node::ReplaceAllUsesWith(Node* replacement) {
  FUSELAGE_CHECK(replacement != nullptr);
  if (replacement == this || first_use_ == nullptr) return;
  if (IsRemovable()) ++graph_->num_dead_nodes_;
  if (replacement->num_uses_ == 0 && replacement->IsRemovable()) --graph_->num_dead_nodes_;
  for (Use* use = first_use_; use != nullptr; use = use->next) use->value = replacement;
  first_use_->previous = replacement->last_use_;
  (replacement->last_use_ != nullptr ? replacement->last_use_->next : replacement->first_use_) = first_use_;
  replacement->last_use_ = last_use_;
  replacement->num_uses_ += num_uses_;
  first_use_ = last_use_ = nullptr;
  num_uses_ = 0;
}

std::vector<std::string> Node::SourcesOrSelf() const {
  return sources_.empty() ? std::vector<std::string>{name_} : sources_;
}

void Node::AddSources(const std::vector<std::string>& sources) {
  sources_.reserve(sources_.size() + sources.size());  // The views below point into it.
  HashSet<absl::string_view> known(sources_.begin(), sources_.end());
  for (const std::string& source : sources) {
    if (known.insert(source).second) sources_.push_back(source);
  }
}

}  // namespace fuselage::ir

#include "ir/graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/batch.h"
#include "ir/fingerprint.h"

namespace fuselage::ir {
namespace {

// One spelling for one call: attributes that repeat the schema's default go.
AttributeMap WithoutDefaults(const OpSchema& schema, AttributeMap attributes) {
  for (auto it = attributes.begin(); it != attributes.end();) {
    const AttributeSpec* spec = schema.FindAttributeOrNull(it->first);
    it = spec != nullptr && spec->default_value == it->second ? attributes.erase(it) : std::next(it);
  }
  return attributes;
}

// One spelling again: absent optional operands at the end go.
void DropTrailingAbsent(std::vector<Node*>& operands) {
  while (!operands.empty() && operands.back() == nullptr) operands.pop_back();
}

}  // namespace

std::string SanitizedName(absl::string_view name) {
  std::string sanitized(name);
  for (char& c : sanitized) {
    const bool keep =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
    if (!keep) c = '_';
  }
  return sanitized.empty() ? "_" : sanitized;
}

Graph::Graph(std::string name, const OpRegistry& ops) : name_(SanitizedName(name)), ops_(&ops) {}

Graph::~Graph() {
  for (Node* node = first_; node != nullptr;) {
    Node* next = node->next_;
    delete node;
    node = next;
  }
}

absl::StatusOr<Node*> Graph::AddPlaceholder(absl::string_view name, TensorType type, Node* before) {
  absl::StatusOr<int64_t> count = CheckedNumElements(type.shape);
  if (!count.ok()) return Annotate(count.status(), absl::StrCat("%", name));
  if (type.quant)
    RETURN_IF_ERROR(Annotate(CheckQuantParams(*type.quant, type.dtype, type.shape), absl::StrCat("%", name)));
  std::unique_ptr<Node> node = NewNode(NodeKind::kPlaceholder, "", {});
  node->type_ = Type(std::move(type));
  return Insert(std::move(node), name, before);
}

absl::StatusOr<Node*> Graph::AddGetAttr(absl::string_view name, absl::string_view parameter, Node* before) {
  const auto it = parameters_by_name_.find(parameter);
  if (it == parameters_by_name_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("%", name, ": no parameter @", parameter));
  }
  CountUses(*it->second, 1);
  std::unique_ptr<Node> node = NewNode(NodeKind::kGetAttr, it->first, {});
  node->parameter_ = it->second;
  node->type_ = it->second->type;
  return Insert(std::move(node), name, before);
}

absl::StatusOr<Node*> Graph::AddFunction(absl::string_view name, absl::string_view target, std::vector<Node*> operands,
                                         AttributeMap attributes, Node* before) {
  return AddCall(NodeKind::kCallFunction, name, target, ops_->FindOrNull(target), nullptr, std::move(operands),
                 std::move(attributes), before);
}

absl::StatusOr<Node*> Graph::AddMethod(absl::string_view name, absl::string_view target, std::vector<Node*> operands,
                                       AttributeMap attributes, Node* before) {
  return AddCall(NodeKind::kCallMethod, name, target, ops_->FindOrNull(target), nullptr, std::move(operands),
                 std::move(attributes), before);
}

absl::StatusOr<Node*> Graph::AddModuleCall(absl::string_view name, absl::string_view path, std::vector<Node*> operands,
                                           Node* before) {
  Module* module = FindModuleOrNull(path);
  if (module == nullptr) return absl::InvalidArgumentError(absl::StrCat("%", name, ": no module @", path));
  return AddCall(NodeKind::kCallModule, name, path, module->op, module, std::move(operands), {}, before);
}

absl::StatusOr<Node*> Graph::AddCall(NodeKind kind, absl::string_view name, absl::string_view target,
                                     const OpSchema* op, Module* module, std::vector<Node*> operands,
                                     AttributeMap attributes, Node* before) {
  if (op == nullptr) return absl::UnimplementedError(absl::StrCat("%", name, ": unknown operator '", target, "'"));
  DropTrailingAbsent(operands);
  std::unique_ptr<Node> node = NewNode(kind, target, operands);
  node->op_ = op;
  node->module_ = module;
  node->attributes_ = WithoutDefaults(*op, std::move(attributes));
  absl::StatusOr<Type> type = InferType(*node);
  if (!type.ok()) {
    for (Use& use : node->operands_) node->UnlinkOperand(&use);
    return Annotate(type.status(), absl::StrCat("%", name));
  }
  node->type_ = *std::move(type);
  Node* inserted = Insert(std::move(node), name, before);
  if (module != nullptr) {
    MakeRoom(module->call_sites);
    if (module->call_sites.empty()) --num_uncalled_modules_;
    module->call_sites.insert(inserted);
  }
  return inserted;
}

absl::StatusOr<Node*> Graph::AddOutput(std::vector<Node*> operands) {
  if (output_ != nullptr) return absl::InvalidArgumentError("a second output node");
  for (Node* operand : operands) {
    if (operand == nullptr) return absl::InvalidArgumentError("output: an operand is absent");
  }
  std::unique_ptr<Node> node = NewNode(NodeKind::kOutput, "", operands);
  output_ = Insert(std::move(node), "output", nullptr);
  return output_;
}

std::unique_ptr<Node> Graph::NewNode(NodeKind kind, absl::string_view target, const std::vector<Node*>& operands) {
  std::unique_ptr<Node> node(new Node());
  node->graph_ = this;
  node->kind_ = kind;
  node->target_ = std::string(target);
  node->operands_.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    Use& use = node->operands_.emplace_back();
    use.user = node.get();
    use.index = static_cast<int>(i);
    node->LinkOperand(&use, operands[i]);
  }
  return node;
}

Node* Graph::Insert(std::unique_ptr<Node> owned, absl::string_view wish, Node* before) {
  Node* node = owned.get();
  node->name_ = SanitizedName(wish);
  if (nodes_by_name_.contains(node->name_)) {
    MakeRoom(next_suffix_);
    int64_t& suffix = next_suffix_[std::string(node->name_)];
    std::string unique;
    do {
      unique = absl::StrCat(node->name_, "_", ++suffix);
    } while (nodes_by_name_.contains(unique));
    node->name_ = std::move(unique);
  }
  MakeRoom(nodes_by_name_);
  nodes_by_name_.emplace(node->name_, node);
  owned.release();  // Nothing below allocates.
  if (before == nullptr) before = output_;
  node->next_ = before;
  node->previous_ = before != nullptr ? before->previous_ : last_;
  (node->previous_ != nullptr ? node->previous_->next_ : first_) = node;
  (before != nullptr ? before->previous_ : last_) = node;
  ++num_nodes_;
  if (node->IsRemovable()) ++num_dead_nodes_;
  return node;
}

void Graph::Erase(Node* node) {
  FUSELAGE_CHECK(node->graph_ == this && node->num_uses_ == 0);
  for (Use& use : node->operands_) node->UnlinkOperand(&use);
  if (node->module_ != nullptr) {
    node->module_->call_sites.erase(node);
    if (node->module_->call_sites.empty()) ++num_uncalled_modules_;
  }
  if (node->kind_ == NodeKind::kGetAttr) CountUses(*node->parameter_, -1);
  if (node->IsRemovable()) --num_dead_nodes_;
  if (node == output_) output_ = nullptr;
  (node->previous_ != nullptr ? node->previous_->next_ : first_) = node->next_;
  (node->next_ != nullptr ? node->next_->previous_ : last_) = node->previous_;
  nodes_by_name_.erase(node->name_);
  --num_nodes_;
  delete node;
}

void Graph::Replace(Node* node, Node* replacement) {
  FUSELAGE_CHECK(node->graph_ == this && replacement->graph_ == this && node != replacement);
  if (!node->sources_.empty() || !replacement->sources_.empty()) {
    const std::vector<std::string> further = std::move(replacement->sources_);
    replacement->sources_ = node->SourcesOrSelf();
    replacement->AddSources(further);
  }
  node->ReplaceAllUsesWith(replacement);
  std::string name = node->name_;
  Erase(node);
  nodes_by_name_.erase(replacement->name_);
  replacement->name_ = std::move(name);
  MakeRoom(nodes_by_name_);
  nodes_by_name_.emplace(replacement->name_, replacement);
}

void Graph::AppendOutput(Node* value) {
  FUSELAGE_CHECK(output_ != nullptr && value != nullptr);
  std::vector<Use>& operands = output_->operands_;
  if (operands.size() == operands.capacity()) {
    std::vector<Use> moved;
    moved.reserve(2 * operands.size() + 1);
    for (const Use& use : operands) {
      Use* to = &moved.emplace_back(use);
      (to->previous != nullptr ? to->previous->next : to->value->first_use_) = to;
      (to->next != nullptr ? to->next->previous : to->value->last_use_) = to;
    }
    operands = std::move(moved);
  }
  Use& use = operands.emplace_back();
  use.user = output_;
  use.index = static_cast<int>(operands.size()) - 1;
  output_->LinkOperand(&use, value);
}

std::vector<Node*> Graph::placeholders() const {
  std::vector<Node*> found;
  for (Node* node = first_; node != nullptr; node = node->next_) {
    if (node->kind_ == NodeKind::kPlaceholder) found.push_back(node);
  }
  return found;
}

Node* Graph::FindNodeOrNull(absl::string_view name) const {
  const auto it = nodes_by_name_.find(name);
  return it == nodes_by_name_.end() ? nullptr : it->second;
}

std::vector<Node*> Graph::Snapshot() const {
  std::vector<Node*> nodes;
  nodes.reserve(num_nodes_);
  for (Node* node = first_; node != nullptr; node = node->next_) nodes.push_back(node);
  return nodes;
}

absl::StatusOr<Module*> Graph::AddModule(absl::string_view path, absl::string_view op, AttributeMap attributes,
                                         std::map<std::string, std::string> parameters) {
  if (FindModuleOrNull(path) != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("a second module @", path));
  }
  auto module = std::make_unique<Module>();
  module->path = std::string(path);
  Module* added = module.get();
  const auto it = modules_.emplace(module->path, std::move(module)).first;
  MakeRoom(modules_by_path_);
  modules_by_path_.emplace(it->first, added);
  ++num_uncalled_modules_;
  absl::Status status = UpdateModule(added, op, std::move(attributes), std::move(parameters));
  if (!status.ok()) {
    modules_by_path_.erase(added->path);
    modules_.erase(modules_.find(path));
    --num_uncalled_modules_;
    return status;
  }
  return added;
}

Module* Graph::FindModuleOrNull(absl::string_view path) const {
  const auto it = modules_by_path_.find(path);
  return it == modules_by_path_.end() ? nullptr : it->second;
}

std::string Graph::UniqueModulePath(absl::string_view wish) const {
  const std::string path = SanitizedName(wish);
  if (FindModuleOrNull(path) == nullptr) return path;
  MakeRoom(next_suffix_);
  int64_t& suffix = next_suffix_[absl::StrCat("@", path)];
  std::string unique;
  do {
    unique = absl::StrCat(path, "_", ++suffix);
  } while (FindModuleOrNull(unique) != nullptr);
  return unique;
}

absl::Status Graph::UpdateModule(Module* module, absl::string_view op_name, AttributeMap attributes,
                                 std::map<std::string, std::string> parameters) {
  const OpSchema* op = ops_->FindOrNull(op_name);
  if (op == nullptr) {
    return absl::UnimplementedError(absl::StrCat("@", module->path, ": unknown operator '", op_name, "'"));
  }
  std::vector<Parameter*> operands(op->operands.size(), nullptr);
  for (const auto& [operand, parameter] : parameters) {
    const int index = op->OperandIndex(operand);
    if (index < 0 || !op->operands[index].parameter) {
      return absl::InvalidArgumentError(
          absl::StrCat("@", module->path, ": ", op->name, " has no parameter '", operand, "'"));
    }
    const auto it = parameters_by_name_.find(parameter);
    if (it == parameters_by_name_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("@", module->path, ": no parameter @", parameter));
    }
    operands[index] = it->second;
  }
  attributes = WithoutDefaults(*op, std::move(attributes));
  const OpSchema* old_op = std::exchange(module->op, op);
  std::swap(module->attributes, attributes);  // The arguments now hold what was there before.
  std::swap(module->parameters, parameters);
  std::swap(module->operands, operands);
  for (Node* node : module->call_sites) {
    node->op_ = op;
    absl::StatusOr<Type> type = InferType(*node);
    absl::Status status = type.status();
    if (status.ok() && *type != node->type_) {
      status = absl::InvalidArgumentError(
          absl::StrCat("type would change from ", ToString(node->type_), " to ", ToString(*type)));
    }
    if (status.ok()) continue;
    module->op = old_op;
    module->attributes = std::move(attributes);
    module->parameters = std::move(parameters);
    module->operands = std::move(operands);
    for (Node* restored : module->call_sites) restored->op_ = old_op;
    return Annotate(status, absl::StrCat("%", node->name_, " after a change of module @", module->path));
  }
  CountParameters(module->operands, 1);
  CountParameters(operands, -1);
  return absl::OkStatus();
}

void Graph::RenameModule(Module* module, absl::string_view path) {
  FUSELAGE_CHECK(FindModuleOrNull(path) == nullptr);
  modules_by_path_.erase(module->path);
  auto entry = modules_.extract(module->path);
  entry.key() = module->path = std::string(path);
  modules_by_path_.emplace(modules_.insert(std::move(entry)).position->first, module);
  for (Node* call : module->call_sites) call->target_ = module->path;
}

void Graph::EraseModule(Module* module) {
  FUSELAGE_CHECK(module->call_sites.empty());
  CountParameters(module->operands, -1);
  modules_by_path_.erase(module->path);
  modules_.erase(modules_.find(module->path));
  --num_uncalled_modules_;
}

int64_t Graph::EraseUncalledModules() {
  const int64_t count = num_uncalled_modules_;
  for (auto it = modules_.begin(); num_uncalled_modules_ > 0;) {
    const Module& module = *it->second;
    if (!module.call_sites.empty()) {
      ++it;
      continue;
    }
    CountParameters(module.operands, -1);
    modules_by_path_.erase(it->first);
    it = modules_.erase(it);
    --num_uncalled_modules_;
  }
  return count;
}

void Graph::CountUses(Parameter& parameter, int delta) {
  if (parameter.uses == 0) --num_unused_parameters_;
  parameter.uses += delta;
  if (parameter.uses == 0) ++num_unused_parameters_;
}

void Graph::CountParameters(const std::vector<Parameter*>& parameters, int delta) {
  for (Parameter* parameter : parameters) {
    if (parameter != nullptr) CountUses(*parameter, delta);
  }
}

std::string Graph::AddParameter(absl::string_view wish, std::shared_ptr<const Tensor> tensor,
                                std::optional<uint64_t> seed) {
  std::string name = SanitizedName(wish);
  if (FindParameterOrNull(name) != nullptr) {
    MakeRoom(next_suffix_);
    int64_t& suffix = next_suffix_[absl::StrCat("#", name)];
    std::string unique;
    do {
      unique = absl::StrCat(name, "_", ++suffix);
    } while (FindParameterOrNull(unique) != nullptr);
    name = unique;
  }
  Parameter parameter{name, std::move(tensor), seed, 0, Type(), 0};
  parameter.type = Type(parameter.tensor->type());
  parameter.fingerprint = ValueFingerprint(*parameter.tensor);
  const auto it = parameters_.emplace(name, std::move(parameter)).first;
  MakeRoom(parameters_by_name_);
  parameters_by_name_.emplace(it->first, &it->second);
  ++num_unused_parameters_;
  return name;
}

const Parameter* Graph::FindParameterOrNull(absl::string_view name) const {
  const auto it = parameters_by_name_.find(name);
  return it == parameters_by_name_.end() ? nullptr : it->second;
}

void Graph::EraseParameter(absl::string_view name) {
  const auto it = parameters_.find(name);
  FUSELAGE_CHECK(it != parameters_.end() && it->second.uses == 0);
  parameters_by_name_.erase(it->first);
  parameters_.erase(it);
  --num_unused_parameters_;
}

int64_t Graph::EraseUnusedParameters() {
  const int64_t count = num_unused_parameters_;
  for (auto it = parameters_.begin(); num_unused_parameters_ > 0;) {
    if (it->second.uses > 0) {
      ++it;
      continue;
    }
    parameters_by_name_.erase(it->first);
    it = parameters_.erase(it);
    --num_unused_parameters_;
  }
  return count;
}

const Tensor* Graph::ParameterOfOrNull(const Node& node, absl::string_view operand) const {
  if (node.op_ == nullptr) return nullptr;
  const int index = node.op_->OperandIndex(operand);
  if (index < 0) return nullptr;
  const Parameter* parameter = nullptr;
  if (node.module_ != nullptr) {
    parameter = node.module_->operands[index];
  } else if (index < node.num_operands() && node.operand(index) != nullptr) {
    parameter = node.operand(index)->parameter_;
  }
  return parameter == nullptr ? nullptr : parameter->tensor.get();
}

std::vector<const Type*> Graph::OperandTypes(const Node& node) const {
  std::vector<const Type*> types;
  if (node.op_ == nullptr) return types;
  for (const Argument& argument : node.arguments()) {
    types.push_back(argument.value != nullptr       ? &argument.value->type_
                    : argument.parameter != nullptr ? &argument.parameter->type
                                                    : nullptr);
  }
  while (!types.empty() && types.back() == nullptr) types.pop_back();
  return types;
}

Cost Graph::CostOf(const Node& node) const {
  return ops_->CostOf(*node.op_, node.attributes(), OperandTypes(node), node.type_);
}

absl::StatusOr<Type> Graph::InferType(const Node& node) const {
  switch (node.kind_) {
    case NodeKind::kPlaceholder: return node.type_;
    case NodeKind::kGetAttr: return node.parameter_->type;
    case NodeKind::kOutput: return Type();
    default: return Infer(*node.op_, node.attributes(), OperandTypes(node));
  }
}

absl::Status Graph::InferAllTypes() {
  for (Node* node = first_; node != nullptr; node = node->next_) {
    absl::StatusOr<Type> type = InferType(*node);
    if (!type.ok()) return Annotate(type.status(), absl::StrCat("%", node->name_));
    node->type_ = *std::move(type);
  }
  return absl::OkStatus();
}

absl::Status Graph::SetBatch(int64_t batch) {
  for (Node* node = first_; node != nullptr; node = node->next_) {
    if (const auto it = node->attributes_.find(kBatchAttribute); it != node->attributes_.end()) it->second = batch;
    if (node->kind_ != NodeKind::kPlaceholder) continue;
    TensorType type = node->tensor_type();
    if (type.shape.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("%", node->name_, ": a scalar has no batch dimension"));
    }
    type.shape[0] = batch;
    absl::StatusOr<int64_t> count = CheckedNumElements(type.shape);
    if (!count.ok()) return Annotate(count.status(), absl::StrCat("%", node->name_));
    node->type_ = Type(std::move(type));
  }
  return Annotate(InferAllTypes(), absl::StrCat("batch ", batch));
}

std::unique_ptr<Graph> Graph::Clone() const {
  auto clone = std::make_unique<Graph>(name_, *ops_);
  clone->last_visit_ = last_visit_;  // Marks are copied.
  for (const auto& [name, parameter] : parameters_) {
    const auto it = clone->parameters_.emplace(name, parameter).first;
    it->second.uses = 0;
    MakeRoom(clone->parameters_by_name_);
    clone->parameters_by_name_.emplace(it->first, &it->second);
    ++clone->num_unused_parameters_;
  }
  for (const auto& [path, module] : modules_) {
    auto copy = std::make_unique<Module>(
        Module{path, module->op, module->attributes, module->parameters, module->operands, {}});
    for (Parameter*& parameter : copy->operands) {
      if (parameter != nullptr) parameter = clone->parameters_by_name_.find(parameter->name)->second;
    }
    clone->CountParameters(copy->operands, 1);
    const auto it = clone->modules_.emplace(path, std::move(copy)).first;
    MakeRoom(clone->modules_by_path_);
    clone->modules_by_path_.emplace(it->first, it->second.get());
    ++clone->num_uncalled_modules_;
  }
  HashMap<const Node*, Node*> copies;
  for (const Node* node = first_; node != nullptr; node = node->next_) {
    std::vector<Node*> operands;
    for (const Use& use : node->operands_) operands.push_back(use.value == nullptr ? nullptr : copies[use.value]);
    std::unique_ptr<Node> owned = clone->NewNode(node->kind_, node->target_, operands);
    owned->op_ = node->op_;
    owned->type_ = node->type_;
    owned->attributes_ = node->attributes_;
    owned->sources_ = node->sources_;
    if (node->module_ != nullptr) owned->module_ = clone->FindModuleOrNull(node->target_);
    if (node->kind_ == NodeKind::kGetAttr) {
      owned->parameter_ = clone->parameters_by_name_.find(node->target_)->second;
      clone->CountUses(*owned->parameter_, 1);
    }
    Node* copy = clone->Insert(std::move(owned), node->name_, nullptr);
    if (copy->module_ != nullptr) {
      MakeRoom(copy->module_->call_sites);
      if (copy->module_->call_sites.empty()) --clone->num_uncalled_modules_;
      copy->module_->call_sites.insert(copy);
    }
    if (copy->kind_ == NodeKind::kOutput) clone->output_ = copy;
    copies[node] = copy;
  }
  return clone;
}

}  // namespace fuselage::ir

#include "passes/quant_lift/quant_lift.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace fuselage::quant_lift {
namespace {

using ir::Node;
using ir::NodeKind;
using passes::Remarks;

// --- The ops that can be lifted. A further one (the dynamic quantizes) is a row here with a rule of its own.

// The type of the codes in front of a view, such that the view makes `below` of it: what a per-axis quantize must
// produce there. The view's own inference knows where axes go.
absl::StatusOr<TensorType> QuantizeAbove(const Node& quantize, const Node& view, const TensorType& below) {
  if (!below.quant && quantize.attribute("axis").as_int() != QuantParams::kPerTensor) {
    return absl::UnimplementedError(absl::StrCat("%", quantize.name(), " has computed scales per axis"));
  }
  TensorType above = below;
  above.shape = view.operand(0)->tensor_type().shape;
  const bool per_axis = below.quant && !below.quant->per_tensor();
  for (int axis = 0; axis < (per_axis ? above.rank() : 1); ++axis) {
    if (per_axis) above.quant->axis = axis;
    const ir::Type operand(above);
    std::vector<const ir::Type*> operands = view.graph().OperandTypes(view);
    operands[0] = &operand;
    const absl::StatusOr<ir::Type> type = ir::Infer(*view.op(), view.attributes(), std::move(operands));
    if (type.ok() && *type == ir::Type(below)) return above;
    if (!per_axis) return type.ok() ? absl::UnimplementedError("it does not pass codes on") : type.status();
  }
  return absl::UnimplementedError(absl::StrCat("the axis of %", quantize.name(), "'s scales is none in front of it"));
}

struct LiftableOp {
  absl::string_view op;
  absl::StatusOr<TensorType> (*above)(const Node& quantize, const Node& view, const TensorType& below);
};
constexpr LiftableOp kLiftable[] = {{"quantize", QuantizeAbove}};

const LiftableOp* FindLiftableOrNull(const Node& node) {
  for (const LiftableOp& liftable : kLiftable) {
    if (node.IsOp(liftable.op)) return &liftable;
  }
  return nullptr;
}

// What a parameter operand is, as text: equal constants are equal under any name.
std::string OperandKey(const Node* operand) {
  if (operand == nullptr) return "none";
  if (operand->kind() == NodeKind::kGetAttr) {
    const Tensor& tensor = *operand->graph().FindParameterOrNull(operand->target())->tensor;
    if (tensor.byte_size() <= 1024) {
      const absl::string_view bytes(static_cast<const char*>(tensor.raw_data()), tensor.byte_size());
      return absl::StrCat(ToString(tensor.type()), bytes);
    }
    return absl::StrCat("@", operand->target());
  }
  return absl::StrCat("%", operand->name());
}

// Two calls with one key do the same to any value: the parameters count, not how they are spelled. `type` is that of
// the codes, which differs from the node's where the quantize is thought in front of a view.
std::string KeyOf(const Node& quantize, const TensorType& type) {
  std::string key = quantize.op()->name;
  absl::StrAppend(&key, ";", DTypeName(type.dtype));
  if (type.quant) {
    // As bytes: text takes a hundred times as long.
    const auto append = [&key](const void* data, size_t size) { key.append(static_cast<const char*>(data), size); };
    append(&type.quant->axis, sizeof(type.quant->axis));
    append(type.quant->scales.data(), type.quant->scales.size() * sizeof(float));
    append(type.quant->zero_points.data(), type.quant->zero_points.size() * sizeof(int32_t));
    return key;
  }
  for (const ir::AttributeSpec& spec : quantize.op()->attributes) {
    absl::StrAppend(&key, ";", spec.name, "=", quantize.attribute(spec.name).ToString());
  }
  for (int i = 1; i < quantize.num_operands(); ++i) absl::StrAppend(&key, ";", OperandKey(quantize.operand(i)));
  return key;
}

// `quantize` for the value `source`, with result `type`.
absl::StatusOr<Node*> AddQuantize(const Node& quantize, const TensorType& type, Node* source, Node* before,
                                  ir::Graph& graph) {
  std::vector<Node*> operands = quantize.operands();
  operands[0] = source;
  AttributeMap attributes = quantize.attributes();
  if (type.quant) attributes.insert_or_assign("axis", Attribute(int64_t{type.quant->axis}));
  return graph.AddFunction(absl::StrCat(source->name(), "_q"), quantize.op()->name, std::move(operands),
                           std::move(attributes), before);
}

class Lifter {
 public:
  Lifter(ir::Graph& graph, Remarks& remarks) : graph_(graph), remarks_(remarks) {}

  absl::StatusOr<bool> Run() {
    int64_t position = 0;
    for (const Node* node = graph_.first(); node != nullptr; node = node->next()) {
      position_[node] = position++;
      if (FindLiftableOrNull(*node) != nullptr) key_[node] = Intern(KeyOf(*node, node->tensor_type()));
    }
    FindViews();
    RETURN_IF_ERROR(Lift());
    const bool combined = Combine();
    for (auto& [node, further] : further_sources_) {
      std::vector<std::string> sources = OwnSources(*node);
      sources.insert(sources.end(), further.begin(), further.end());
      node->AddSources(sources);
    }
    return !lifted_.empty() || combined;
  }

 private:
  // A quantize, as it looks at one place of a chain of views.
  struct Lifted {
    const Node* quantize = nullptr;  // One of those that are to go.
    TensorType codes;
    int key = -1;
  };

  // Bottom up: a view is lifted when all its readers are equal quantizes, or views that are lifted with the same.
  void FindViews() {
    for (Node* node = graph_.last(); node != nullptr; node = node->previous()) {
      if (node->op() == nullptr || !node->op()->view || node->num_operands() == 0) continue;
      Lifted below;
      const Node* misfit = nullptr;
      for (const ir::Use& use : node->uses()) {
        const Lifted reader = ReaderOf(use);
        if (reader.quantize == nullptr) {
          misfit = use.user;
        } else if (below.quantize == nullptr) {
          below = reader;
        } else if (reader.key != below.key) {
          misfit = reader.quantize;
        }
      }
      if (below.quantize == nullptr) continue;
      absl::StatusOr<Lifted> above = misfit != nullptr ? WhyMisfit(*misfit) : Above(*node, below);
      if (above.ok()) {
        above_[node] = *std::move(above);
        lifted_.push_back(node);
      } else {
        remarks_.Missed(*node, absl::StrCat("quantize not lifted: ", above.status().message()));
      }
    }
  }

  Lifted ReaderOf(const ir::Use& use) const {
    if (use.index != 0) return {};
    const auto key = key_.find(use.user);
    if (key != key_.end()) return {use.user, use.user->tensor_type(), key->second};
    const auto it = above_.find(use.user);
    return it == above_.end() ? Lifted{} : it->second;
  }

  static absl::Status WhyMisfit(const Node& misfit) {
    if (misfit.kind() == NodeKind::kOutput) return absl::UnimplementedError("is a graph output as well");
    return absl::UnimplementedError(absl::StrCat("also read by %", misfit.name(), ", which is no equal quantize"));
  }

  // What quantizes in front of `view`, given what does behind it.
  absl::StatusOr<Lifted> Above(const Node& view, const Lifted& below) {
    const TensorType& source = view.operand(0)->tensor_type();
    if (source.num_elements() != view.tensor_type().num_elements()) {
      return absl::UnimplementedError("the view loses or repeats elements");
    }
    for (int i = 1; i < below.quantize->num_operands(); ++i) {
      const Node* operand = below.quantize->operand(i);
      if (operand != nullptr && position_.at(operand) > position_.at(&view)) {
        return absl::UnimplementedError(absl::StrCat("%", operand->name(), " is defined after the view"));
      }
    }
    Lifted above{below.quantize, {}, -1};
    ASSIGN_OR_RETURN(above.codes, FindLiftableOrNull(*below.quantize)->above(*below.quantize, view, below.codes));
    above.key = Intern(KeyOf(*below.quantize, above.codes));
    return above;
  }

  absl::Status Lift() {
    if (lifted_.empty()) return absl::OkStatus();
    absl::flat_hash_map<const Node*, Node*> top;  // For each lifted view, the quantize above its chain.
    for (auto it = lifted_.rbegin(); it != lifted_.rend(); ++it) {  // In the graph's order.
      Node* view = *it;
      Node* source = view->operand(0);
      if (above_.contains(source)) {
        Node* quantize = top.at(source);
        top[view] = quantize;
        continue;
      }
      const Lifted& above = above_.at(view);
      ASSIGN_OR_RETURN(Node * quantize, AddQuantize(*above.quantize, above.codes, source, view, graph_));
      key_[quantize] = above.key;
      created_.insert(quantize);
      top[view] = quantize;
      view->set_operand(0, quantize);
      remarks_.Applied(*quantize, absl::StrCat("lifted above %", view->name()));
    }
    // Apart from the loop above, whose views still name their quantize.
    for (Node* view : lifted_) {
      for (Node* user : view->users()) {
        if (!key_.contains(user)) continue;
        MoveSources(user, top.at(view));
        user->ReplaceAllUsesWith(view);
        key_.erase(user);
        graph_.Erase(user);
      }
    }
    return graph_.InferAllTypes();
  }

  // The first of equal quantizes serves all: in the graph's order, so it is defined before their readers.
  bool Combine() {
    absl::flat_hash_map<std::pair<const Node*, int>, Node*> first;
    bool changed = false;
    for (Node* node : graph_.Snapshot()) {
      const auto key = key_.find(node);
      if (key == key_.end()) continue;
      const auto [it, added] = first.emplace(std::make_pair(node->operand(0), key->second), node);
      if (added) continue;
      MoveSources(node, it->second);
      remarks_.Applied(*it->second, absl::StrCat("combined with %", node->name()));
      node->ReplaceAllUsesWith(it->second);
      graph_.Erase(node);
      changed = true;
    }
    return changed;
  }

  // What a quantize comes from, itself included; a lifted one comes from those it replaces.
  std::vector<std::string> OwnSources(const Node& quantize) const {
    return created_.contains(&quantize) ? std::vector<std::string>() : quantize.SourcesOrSelf();
  }

  // `from` is about to be erased. Collected first: one addition for each node keeps this linear.
  void MoveSources(Node* from, Node* to) {
    std::vector<std::string> moved = OwnSources(*from);
    if (const auto it = further_sources_.find(from); it != further_sources_.end()) {
      moved.insert(moved.end(), it->second.begin(), it->second.end());
      further_sources_.erase(it);
    }
    std::vector<std::string>& sources = further_sources_[to];
    sources.insert(sources.end(), moved.begin(), moved.end());
  }

  int Intern(std::string key) { return keys_.emplace(std::move(key), static_cast<int>(keys_.size())).first->second; }

  ir::Graph& graph_;
  Remarks& remarks_;
  absl::flat_hash_map<const Node*, int64_t> position_;
  absl::flat_hash_map<std::string, int> keys_;
  absl::flat_hash_map<const Node*, int> key_;       // Of each quantize.
  absl::flat_hash_map<const Node*, Lifted> above_;  // For each lifted view.
  std::vector<Node*> lifted_;                       // Views, in reverse order.
  absl::flat_hash_set<const Node*> created_;        // Quantizes in front of lifted views.
  absl::flat_hash_map<Node*, std::vector<std::string>> further_sources_;
};

}  // namespace

absl::StatusOr<bool> QuantLift::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  return Lifter(graph, remarks).Run();
}

absl::Status QuantLift::Ensures(const ir::Graph& graph) const {
  absl::flat_hash_map<std::pair<const Node*, std::string>, const Node*> seen;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (FindLiftableOrNull(*node) == nullptr) continue;
    const auto [it, added] = seen.emplace(std::make_pair(node->operand(0), KeyOf(*node, node->tensor_type())), node);
    if (added) continue;
    return absl::InternalError(absl::StrCat("%", node->name(), " quantizes %", node->operand(0)->name(), " as %",
                                            it->second->name(), " does"));
  }
  return absl::OkStatus();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<QuantLiftOptions>(
      [](const QuantLiftOptions&, const passes::PassEnvironment&) { return std::make_unique<QuantLift>(); });
}

}  // namespace fuselage::quant_lift

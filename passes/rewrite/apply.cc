#include "passes/rewrite/apply.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ir/base/tensor.h"

namespace fuselage::rewrite {
namespace {

using ir::Node;

// Why a value inside the match must stay; empty where all can go.
std::string WhyItStays(const Pattern& pattern, const Match& match) {
  for (const Node* node : match.calls) {
    if (node == match.nodes[pattern.result]) continue;
    for (const Node* user : node->users()) {
      if (user->kind() == ir::NodeKind::kOutput) return absl::StrCat("%", node->name(), " is a graph output");
      if (!absl::c_linear_search(match.calls, user)) {
        return absl::StrCat("%", node->name(), " is also read by %", user->name());
      }
    }
  }
  return "";
}

// Nodes and modules of a replacement, until it is known to fit.
class Draft {
 public:
  Draft(const Rule& rule, const Match& match, ir::Graph& graph)
      : rule_(rule), match_(match), graph_(graph), before_(match.nodes[rule.pattern.result]) {}

  absl::StatusOr<Node*> Build() {
    for (const Pattern::Node& node : rule_.replacement.nodes) {
      if (!node.is_call()) {
        values_.push_back(node.is_new_constant() ? nullptr : FromPattern(node.name));
        continue;
      }
      if (const auto others = OthersWhereSomeAreAbsent(node)) {
        if (others->size() > 1)
          return absl::InvalidArgumentError(absl::StrCat("an operand of %", node.name, " is absent"));
        values_.push_back(others->empty() ? nullptr : others->front());
        continue;
      }
      std::vector<Node*> operands;
      for (const int operand : node.operands) {
        if (operand != Pattern::kAbsent && rule_.replacement.nodes[operand].is_new_constant()) {
          RETURN_IF_ERROR(MakeConstant(operand));
        }
        operands.push_back(operand == Pattern::kAbsent ? nullptr : values_[operand]);
      }
      ASSIGN_OR_RETURN(Node * call, Add(node, std::move(operands)));
      calls_.push_back(call);
      values_.push_back(call);
    }
    return values_[rule_.replacement.result];
  }

  const std::vector<Node*>& calls() const { return calls_; }

  void Discard() {
    while (!calls_.empty()) {
      graph_.Erase(calls_.back());
      calls_.pop_back();
    }
    for (ir::Module* module : modules_) graph_.EraseModule(module);
    for (Node* constant : constants_) {
      const std::string parameter = constant->target();
      graph_.Erase(constant);
      graph_.EraseParameter(parameter);
    }
  }

 private:
  Node* FromPattern(const std::string& name) const {
    for (size_t i = 0; i < match_.nodes.size(); ++i) {
      if (rule_.pattern.nodes[i].name == name) return match_.nodes[i];
    }
    return nullptr;  // ParseRule has checked that it is there.
  }

  // For a `maybe` of which the match has left out operands: those that are there, but for new constants.
  std::optional<std::vector<Node*>> OthersWhereSomeAreAbsent(const Pattern::Node& node) const {
    if (!node.maybe) return std::nullopt;
    std::vector<Node*> there;
    bool all = true;
    for (const int operand : node.operands) {
      if (operand == Pattern::kAbsent || rule_.replacement.nodes[operand].is_new_constant()) continue;
      if (values_[operand] == nullptr) {
        all = false;
      } else {
        there.push_back(values_[operand]);
      }
    }
    if (all) return std::nullopt;
    return there;
  }

  absl::Status MakeConstant(int index) {
    if (values_[index] != nullptr) return absl::OkStatus();
    const Pattern::Node& node = rule_.replacement.nodes[index];
    if (!before_->type().is_tensor()) return absl::InvalidArgumentError("found a tuple, wanted a tensor");
    auto number = std::make_shared<Tensor>(before_->tensor_type().dtype, Shape{});
    number->Set(0, node.number->literal->as_float());
    const std::string name = graph_.AddParameter(absl::StrCat(before_->name(), ".", node.name), std::move(number));
    ASSIGN_OR_RETURN(values_[index], graph_.AddGetAttr(node.name, name, before_));
    constants_.push_back(values_[index]);
    return absl::OkStatus();
  }

  absl::StatusOr<Node*> Add(const Pattern::Node& node, std::vector<Node*> operands) {
    AttributeMap attributes;
    std::map<std::string, std::string> parameters;
    for (const auto& [name, value] : node.values) {
      const auto captured = match_.captures.find(value.capture);
      const bool captures = !value.literal && value.factors.empty() && value.function != "last";
      if (captures && captured == match_.captures.end()) continue;
      ASSIGN_OR_RETURN(const Attribute attribute, value.literal              ? absl::StatusOr<Attribute>(*value.literal)
                                                  : !value.factors.empty()   ? ProductOfCaptures(value.factors)
                                                  : value.function == "last" ? LastSize(value.of)
                                                                             : Computed(value, captured->second));
      if (node.op->FindAttributeOrNull(name) != nullptr) {
        attributes.emplace(name, attribute);
      } else {
        parameters[name] = attribute.as_string();
      }
    }
    const std::string name = before_->name();
    if (node.kind == Pattern::Kind::kFunction) {
      return graph_.AddFunction(name, node.op->name, std::move(operands), std::move(attributes), before_);
    }
    ASSIGN_OR_RETURN(ir::Module * module, graph_.AddModule(graph_.UniqueModulePath(name), node.op->name,
                                                           std::move(attributes), std::move(parameters)));
    modules_.push_back(module);
    return graph_.AddModuleCall(name, module->path, std::move(operands), before_);
  }

  absl::StatusOr<Attribute> LastSize(int node) const {
    if (values_[node] == nullptr || !values_[node]->type().is_tensor() || values_[node]->tensor_type().rank() == 0) {
      return absl::InvalidArgumentError("found no axis, wanted a tensor that has one");
    }
    return Attribute(std::vector<int64_t>{values_[node]->tensor_type().shape.back()});
  }

  absl::StatusOr<Attribute> ProductOfCaptures(const std::vector<std::string>& factors) const {
    double product = 1;
    for (const std::string& factor : factors) {
      const auto captured = match_.captures.find(factor);
      if (captured == match_.captures.end()) continue;
      if (captured->second.kind() != AttributeKind::kFloat) {
        return absl::InvalidArgumentError(
            absl::StrCat("$", factor, "=", captured->second.ToString(), ", wanted a float"));
      }
      product *= captured->second.as_float();
    }
    return Attribute(product);
  }

  // What the function of `value` makes of its capture.
  absl::StatusOr<Attribute> Computed(const Pattern::Value& value, const Attribute& captured) const {
    if (value.function.empty()) return captured;
    if (captured.kind() != AttributeKind::kInts) {
      return absl::InvalidArgumentError(
          absl::StrCat("$", value.capture, "=", captured.ToString(), ", wanted integers"));
    }
    const std::vector<int64_t>& ints = captured.as_ints();
    if (value.function == "only") {
      if (ints.size() == 1) return Attribute(ints[0]);
      return absl::InvalidArgumentError(
          absl::StrCat("found ", ints.size(), " axes ", captured.ToString(), ", wanted one"));
    }
    if (values_[value.of] == nullptr) return absl::InvalidArgumentError("found no operand, wanted a tensor");
    if (!values_[value.of]->type().is_tensor()) return absl::InvalidArgumentError("found a tuple, wanted a tensor");
    const TensorType& type = values_[value.of]->tensor_type();
    std::vector<int> axes;
    for (const int64_t axis : ints) {
      ASSIGN_OR_RETURN(axes.emplace_back(), NormalizeAxis(axis, type.rank()));
    }
    absl::c_sort(axes);
    const int first = type.rank() - static_cast<int>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] == first + static_cast<int>(i)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("found the axes ", captured.ToString(), " of ", ToString(type), ", wanted its last ones"));
    }
    return Attribute(std::vector<int64_t>(type.shape.begin() + first, type.shape.end()));
  }

  const Rule& rule_;
  const Match& match_;
  ir::Graph& graph_;
  Node* before_;
  std::vector<Node*> values_, calls_, constants_;
  std::vector<ir::Module*> modules_;
};

}  // namespace

absl::StatusOr<std::optional<Replacement>> Apply(const Rule& rule, const Match& match, ir::Graph& graph,
                                                 passes::Remarks& remarks) {
  Node* result = match.nodes[rule.pattern.result];
  const auto miss = [&](absl::string_view why) {
    remarks.Missed(*result, absl::StrCat(rule.name, " does not apply: ", why));
    return std::optional<Replacement>();
  };
  const std::string why = WhyItStays(rule.pattern, match);
  if (!why.empty()) return miss(why);
  Draft draft(rule, match, graph);
  const absl::StatusOr<Node*> value = draft.Build();
  if (value.ok() && *value == nullptr) {
    draft.Discard();
    return miss("what it returns is absent");
  }
  if (!value.ok()) {
    draft.Discard();
    return miss(value.status().message());
  }
  if ((*value)->type() != result->type()) {
    const std::string types = absl::StrCat(ToString((*value)->type()), " in place of ", ToString(result->type()));
    draft.Discard();
    return miss(types);
  }
  std::vector<std::string> others;  // Sources of all but the result, whose own Replace adds.
  for (auto it = match.calls.rbegin(); it != match.calls.rend(); ++it) {
    if (*it == result) continue;
    for (std::string& source : (*it)->SourcesOrSelf()) others.push_back(std::move(source));
  }
  remarks.Applied(*result, rule.name);
  for (Node* call : draft.calls()) {
    if (call != *value) call->AddSources(result->SourcesOrSelf());
    call->AddSources(others);
  }
  Replacement replacement{draft.calls(), {match.calls.begin(), match.calls.end()}};
  if (absl::c_linear_search(draft.calls(), *value)) {
    graph.Replace(result, *value);
  } else {
    result->ReplaceAllUsesWith(*value);
    graph.Erase(result);
  }
  std::vector<Node*> rest = match.calls;
  rest.erase(std::find(rest.begin(), rest.end(), result));
  while (!rest.empty()) {  // Users before what they read.
    const auto it = absl::c_find_if(rest, [](const Node* node) { return node->num_uses() == 0; });
    FUSELAGE_CHECK(it != rest.end());
    graph.Erase(*it);
    rest.erase(it);
  }
  return std::optional<Replacement>(std::move(replacement));
}

}  // namespace fuselage::rewrite

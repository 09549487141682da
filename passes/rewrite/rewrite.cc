#include "passes/rewrite/rewrite.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "passes/rewrite/matcher.h"
#include "passes/rewrite/rule.h"

namespace fuselage::rewrite {
namespace {

using ir::Node;
using passes::Remarks;

bool IsCall(const Pattern::Node& node) { return node.op != nullptr; }

// Why a value inside the match must stay; empty where all can go.
std::string WhyItStays(const Pattern& pattern, const Match& match) {
  HashSet<const Node*> inside;
  for (size_t i = 0; i < match.nodes.size(); ++i) {
    if (IsCall(pattern.nodes[i])) inside.insert(match.nodes[i]);
  }
  for (const Node* node : inside) {
    if (node == match.nodes[pattern.result]) continue;
    for (const Node* user : node->users()) {
      if (user->kind() == ir::NodeKind::kOutput) return absl::StrCat("%", node->name(), " is a graph output");
      if (!inside.contains(user)) return absl::StrCat("%", node->name(), " is also read by %", user->name());
    }
  }
  return "";
}

// Nodes and modules of a replacement, until it is known to fit.
class Draft {
 public:
  Draft(ir::Graph& graph, Node* before) : graph_(graph), before_(before) {}

  absl::StatusOr<Node*> Build(const Rule& rule, const Match& match) {
    std::vector<Node*> values;
    for (const Pattern::Node& node : rule.replacement.nodes) {
      if (!IsCall(node)) {
        values.push_back(FromPattern(rule.pattern, match, node.name));
        continue;
      }
      std::vector<Node*> operands;
      for (const int operand : node.operands) {
        operands.push_back(operand == Pattern::kAbsent ? nullptr : values[operand]);
      }
      ASSIGN_OR_RETURN(Node * call, Add(node, match, std::move(operands)));
      calls_.push_back(call);
      values.push_back(call);
    }
    return values[rule.replacement.result];
  }

  const std::vector<Node*>& calls() const { return calls_; }

  void Discard() {
    while (!calls_.empty()) {
      graph_.Erase(calls_.back());
      calls_.pop_back();
    }
    for (ir::Module* module : modules_) graph_.EraseModule(module);
  }

 private:
  static Node* FromPattern(const Pattern& pattern, const Match& match, const std::string& name) {
    for (size_t i = 0; i < pattern.nodes.size(); ++i) {
      if (pattern.nodes[i].name == name) return match.nodes[i];
    }
    return nullptr;  // ParseRule has checked that it is there.
  }

  absl::StatusOr<Node*> Add(const Pattern::Node& node, const Match& match, std::vector<Node*> operands) {
    AttributeMap attributes;
    std::map<std::string, std::string> parameters;
    for (const auto& [name, value] : node.values) {
      const auto captured = match.captures.find(value.capture);
      if (!value.literal && captured == match.captures.end()) continue;
      const Attribute& attribute = value.literal ? *value.literal : captured->second;
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

  ir::Graph& graph_;
  Node* before_;
  std::vector<Node*> calls_;
  std::vector<ir::Module*> modules_;
};

// True: the match was replaced. `gone` takes what was erased.
absl::StatusOr<bool> Apply(const Rule& rule, const Match& match, ir::Graph& graph, Remarks& remarks,
                           HashSet<const Node*>& gone) {
  Node* result = match.nodes[rule.pattern.result];
  const auto miss = [&](absl::string_view why) {
    remarks.Missed(*result, absl::StrCat(rule.name, " does not apply: ", why));
    return false;
  };
  const std::string why = WhyItStays(rule.pattern, match);
  if (!why.empty()) return miss(why);
  Draft draft(graph, result);
  const absl::StatusOr<Node*> replacement = draft.Build(rule, match);
  if (!replacement.ok()) {
    draft.Discard();
    return miss(replacement.status().message());
  }
  if ((*replacement)->type() != result->type()) {
    const std::string types = absl::StrCat(ToString((*replacement)->type()), " in place of ", ToString(result->type()));
    draft.Discard();
    return miss(types);
  }
  std::vector<std::string> others;  // Sources of all but the result, whose own Replace adds.
  for (size_t i = 0; i < match.nodes.size(); ++i) {
    if (!IsCall(rule.pattern.nodes[i]) || match.nodes[i] == result) continue;
    for (std::string& source : match.nodes[i]->SourcesOrSelf()) others.push_back(std::move(source));
  }
  remarks.Applied(*result, rule.name);
  for (Node* call : draft.calls()) {
    if (call != *replacement) call->AddSources(result->SourcesOrSelf());
    call->AddSources(others);
  }
  gone.insert(result);
  if (absl::c_linear_search(draft.calls(), *replacement)) {
    graph.Replace(result, *replacement);
  } else {
    result->ReplaceAllUsesWith(*replacement);
    graph.Erase(result);
  }
  for (size_t i = match.nodes.size(); i-- > 0;) {
    Node* node = match.nodes[i];
    if (!IsCall(rule.pattern.nodes[i]) || node == result) continue;
    gone.insert(node);
    graph.Erase(node);
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> Rewrite::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  bool changed = false;
  for (const RewriteOptions::Rule& options : options_.rules()) {
    const absl::StatusOr<Rule> rule = ParseRule(options, graph.ops());
    if (!rule.ok()) return UsageError(rule.status().message());
    const ir::OpSchema* op = rule->pattern.nodes[rule->pattern.result].op;
    HashSet<const Node*> gone;
    for (Node* node : graph.Snapshot()) {
      if (gone.contains(node) || node->op() != op) continue;
      const std::optional<Match> match = FindMatch(rule->pattern, node);
      if (!match) continue;
      ASSIGN_OR_RETURN(const bool applied, Apply(*rule, *match, graph, remarks, gone));
      changed |= applied;
    }
  }
  return changed;
}

void Register(passes::PassRegistry& registry) {
  registry.Register<RewriteOptions>(
      [](const RewriteOptions& options, const passes::PassEnvironment&) { return std::make_unique<Rewrite>(options); });
}

}  // namespace fuselage::rewrite

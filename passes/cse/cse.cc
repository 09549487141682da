#include "passes/cse/cse.h"

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "passes/cse/cse.pb.h"

namespace fuselage::cse {
namespace {

bool IsRandom(const ir::Node& node) { return node.IsOp("dropout") && node.attribute("training").as_bool(); }

// Equal exactly for calls that compute the same.
std::string Key(const ir::Node& node) {
  std::string key = node.op()->name;
  for (const auto& [name, attribute] : node.attributes()) absl::StrAppend(&key, " ", name, "=", attribute.ToString());
  if (node.module() != nullptr) {
    for (const auto& [operand, parameter] : node.module()->parameters) {
      absl::StrAppend(&key, " ", operand, "=@", parameter);
    }
  }
  for (const ir::Node* operand : node.operands()) {
    absl::StrAppend(&key, " ", operand == nullptr ? "none" : absl::StrCat("%", operand->name()));
  }
  return key;
}

}  // namespace

absl::StatusOr<bool> Cse::RunImpl(ir::Graph& graph, passes::Remarks& remarks) const {
  HashMap<std::string, ir::Node*> first_with_key;
  bool changed = false;
  for (ir::Node* node : graph.Snapshot()) {
    if (!node->is_call()) continue;
    const auto [it, is_first] = first_with_key.emplace(Key(*node), node);
    if (is_first) continue;
    ir::Node* first = it->second;
    if (IsRandom(*node)) {
      remarks.Missed(*node, absl::StrCat("equals %", first->name(), ", but is random in training mode"));
      continue;
    }
    remarks.Applied(*node, absl::StrCat("the same as %", first->name()));
    first->AddSources(first->SourcesOrSelf());
    first->AddSources(node->SourcesOrSelf());
    node->ReplaceAllUsesWith(first);
    graph.Erase(node);
    changed = true;
  }
  return changed;
}

void Register(passes::PassRegistry& registry) {
  registry.Register<CseOptions>(
      [](const CseOptions&, const passes::PassEnvironment&) { return std::make_unique<Cse>(); });
}

}  // namespace fuselage::cse

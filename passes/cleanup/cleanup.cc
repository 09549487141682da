#include "passes/cleanup/cleanup.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/batch.h"
#include "passes/cleanup/identities.h"

namespace fuselage::cleanup {
namespace {

using ir::Node;
using ir::NodeKind;

constexpr int64_t kDefaultFoldedBytes = int64_t{64} << 20;

// A call all of whose operands, its module's parameters aside, are constants of the graph, whatever the batch.
bool IsCallOnConstants(const Node& node) {
  if (!node.is_call() || !node.type().is_tensor() || node.num_operands() == 0) return false;
  if (node.attributes().count(ir::kBatchAttribute) > 0) return false;
  for (const Node* operand : node.operands()) {
    if (operand != nullptr && operand->kind() != NodeKind::kGetAttr) return false;
  }
  return true;
}

// Operand values in the schema's order; null where absent.
std::vector<const Tensor*> OperandValues(const Node& node) {
  std::vector<const Tensor*> values;
  for (const ir::Argument& argument : node.arguments()) {
    values.push_back(argument.absent() ? nullptr : argument.parameter->tensor.get());
  }
  while (!values.empty() && values.back() == nullptr) values.pop_back();
  return values;
}

absl::StatusOr<Tensor> Evaluated(const Node& node) {
  std::vector<std::vector<Tensor>> values;
  for (const Tensor* value : OperandValues(node)) {
    values.emplace_back();
    if (value != nullptr) values.back().push_back(*value);
  }
  std::vector<const std::vector<Tensor>*> operands;
  for (const auto& value : values) operands.push_back(value.empty() ? nullptr : &value);
  absl::StatusOr<std::vector<Tensor>> result =
      ir::Evaluate(*node.op(), node.attributes(), std::move(operands), node.type());
  if (!result.ok()) return Annotate(result.status(), absl::StrCat("%", node.name()));
  return std::move((*result)[0]);
}

// Why a call on constants is not folded; empty where it is.
std::string WhyNotFolded(const Node& node, int64_t max_bytes) {
  if (node.IsOp("dequantize")) return "it marks a quantized weight";
  if (node.IsOp("dropout")) return "it is in training mode";
  const int64_t bytes = node.tensor_type().byte_size();
  if (bytes > max_bytes) return absl::StrCat("its result has ", bytes, " bytes, the budget is ", max_bytes);
  return "";
}

bool HasUnusedModulesOrParameters(const ir::Graph& graph) {
  for (const auto& [path, module] : graph.modules()) {
    if (module->call_sites.empty()) return true;
  }
  for (const auto& [name, parameter] : graph.parameters()) {
    if (parameter.uses == 0) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> Cleanup::RunImpl(ir::Graph& graph, passes::Remarks& remarks) const {
  const int64_t max_bytes = options_.max_folded_bytes() > 0 ? options_.max_folded_bytes() : kDefaultFoldedBytes;
  HashMap<std::string, Node*> get_attrs;               // By parameter: the first in order.
  bool changed = HasUnusedModulesOrParameters(graph);  // Pass::Run removes them, and dead nodes.
  for (Node* node : graph.Snapshot()) {
    const bool is_dead = (node->is_call() || node->kind() == NodeKind::kGetAttr) && node->num_uses() == 0;
    if (is_dead) {
      changed = true;
      continue;
    }
    if (node->kind() == NodeKind::kGetAttr) {
      const auto [first, inserted] = get_attrs.emplace(node->target(), node);
      if (inserted) continue;
      remarks.Applied(*node, absl::StrCat("is %", first->second->name()));
      node->ReplaceAllUsesWith(first->second);
      graph.Erase(node);
      changed = true;
    } else if (Node* same = SameAsOrNull(*node); same != nullptr) {
      remarks.Applied(*node, absl::StrCat("removed: ", node->op()->name, " returns %", same->name()));
      node->ReplaceAllUsesWith(same);
      graph.Erase(node);
      changed = true;
    } else if (!options_.keep_constant_calls() && IsCallOnConstants(*node)) {
      const std::string why = WhyNotFolded(*node, max_bytes);
      if (!why.empty()) {
        remarks.Missed(*node, absl::StrCat("not folded: ", why));
        continue;
      }
      ASSIGN_OR_RETURN(Tensor value, Evaluated(*node));
      const std::string parameter = graph.AddParameter(node->name(), std::make_shared<const Tensor>(std::move(value)));
      ASSIGN_OR_RETURN(Node * get_attr, graph.AddGetAttr(node->name(), parameter, node));
      remarks.Applied(*node, absl::StrCat("folded to the constant @", parameter));
      graph.Replace(node, get_attr);
      get_attrs.emplace(parameter, get_attr);
      changed = true;
    }
  }
  return changed;
}

void Register(passes::PassRegistry& registry) {
  using Made = absl::StatusOr<std::unique_ptr<passes::Pass>>;
  registry.Register<CleanupOptions>([](const CleanupOptions& options, const passes::PassEnvironment&) -> Made {
    if (options.max_folded_bytes() < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("CleanupOptions.max_folded_bytes is ", options.max_folded_bytes(), ", wanted 0 or more"));
    }
    return std::make_unique<Cleanup>(options);
  });
}

}  // namespace fuselage::cleanup

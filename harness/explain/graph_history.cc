#include "harness/explain/graph_history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "harness/explain/graph_table.h"

namespace fuselage::harness {
namespace {

// As IR text has it, but for the scales of channels, which may be thousands.
std::string TypeText(const TensorType& type) {
  if (!type.quant.has_value() || type.quant->per_tensor()) return ToString(type);
  const auto [least, most] = std::minmax_element(type.quant->scales.begin(), type.quant->scales.end());
  TensorType plain = type;
  plain.quant.reset();
  return absl::StrCat(ToString(plain), "<axis=", type.quant->axis, ", ", type.quant->scales.size(), " scales, ",
                      ShortestText(*least), " to ", ShortestText(*most), ">");
}

Results::GraphHistory::Node ToResult(const ir::Node& node) {
  Results::GraphHistory::Node result;
  result.set_name(node.name());
  result.set_kind(std::string(ir::NodeKindName(node.kind())));
  if (node.op() != nullptr) result.set_op(node.op()->name);
  result.set_target(TargetOf(node));
  for (const ir::Node* operand : node.operands()) {
    *result.add_inputs() = operand == nullptr ? "none" : operand->name();
  }
  for (const std::string& source : node.sources()) *result.add_sources() = source;
  const auto append = [](std::string* out, const TensorType& type) { absl::StrAppend(out, TypeText(type)); };
  result.set_type(absl::StrJoin(node.type().elements(), ", ", append));
  if (node.module() == nullptr) return result;
  for (size_t i = 0; i < node.module()->operands.size(); ++i) {
    const ir::Parameter* parameter = node.module()->operands[i];
    if (parameter == nullptr) continue;
    *result.add_weights() = absl::StrCat(node.op()->operands[i].name, " ", TypeText(parameter->tensor->type()));
  }
  return result;
}

// Everything that a node says, lists by other separators than fields.
std::string KeyOf(const Results::GraphHistory::Node& node) {
  const absl::string_view separator("\0", 1), end_of_list("\1", 1);
  return absl::StrCat(node.name(), separator, node.kind(), separator, node.target(), separator, node.type(),
                      end_of_list, absl::StrJoin(node.inputs(), separator), end_of_list,
                      absl::StrJoin(node.sources(), separator), end_of_list, absl::StrJoin(node.weights(), separator));
}

}  // namespace

void GraphHistoryBuilder::Add(const ir::Graph& graph, absl::string_view after, Results::GraphHistory* history) {
  Results::GraphHistory::Step step;
  step.set_after(std::string(after));
  for (const ir::Node* node : graph.Snapshot()) {
    Results::GraphHistory::Node result = ToResult(*node);
    const auto [place, is_new] = index_.try_emplace(KeyOf(result), history->nodes_size());
    if (is_new) *history->add_nodes() = std::move(result);
    step.add_nodes(place->second);
  }
  const auto& steps = history->steps();
  if (!steps.empty() && std::equal(step.nodes().begin(), step.nodes().end(), steps.rbegin()->nodes().begin(),
                                   steps.rbegin()->nodes().end())) {
    return;
  }
  *history->add_steps() = std::move(step);
}

}  // namespace fuselage::harness

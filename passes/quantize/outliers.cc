#include "passes/quantize/outliers.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/match/properties.h"
#include "passes/quantize/group_weights.h"
#include "passes/quantize/weight_grid.h"

namespace fuselage::quantize {
namespace {

using ir::Node;

constexpr int kLeastFeatureCodes = 32;

int LeastCodes(const QuantizeOptions& options) {
  return options.has_least_feature_codes() ? options.least_feature_codes() : kLeastFeatureCodes;
}

// Constants are no values that samples tell of.
bool IsOfTokens(const Node& value) {
  return value.kind() != ir::NodeKind::kGetAttr && match::IsF32(value) && value.tensor_type().shape.size() >= 3;
}

// By a linear, as it is or seen through views.
bool IsReadByLinear(const Node& value) {
  const std::vector<ir::Use> uses = value.uses();
  return std::any_of(uses.begin(), uses.end(), [](const ir::Use& use) {
    const Node& reader = *use.user;
    const bool view = reader.op() != nullptr && reader.op()->view != ir::View::kNone && use.index == 0;
    return view ? IsReadByLinear(reader) : TakesRows(reader) && use.index == 0;
  });
}

// Computes element by element what linears made or will read.
bool IsBesideLinears(const Node& node) {
  if (!node.op()->elementwise || node.op()->keeps_range || !IsOfTokens(node)) return false;
  const std::vector<int> data = DataOperands(node);
  return IsReadByLinear(node) ||
         std::any_of(data.begin(), data.end(), [&](int i) { return TakesRows(SourceOf(*node.operand(i))); });
}

// Operands and result, but for what is repeated to the result's shape.
std::vector<const Node*> ValuesOf(const Node& node) {
  std::vector<const Node*> values = {&node};
  for (const int i : DataOperands(node)) {
    const Node* operand = node.operand(i);
    if (IsOfTokens(*operand) && operand->tensor_type().shape == node.tensor_type().shape) values.push_back(operand);
  }
  return values;
}

// Of the selection's linears, the statically quantized ones whose input has a scale for each token if the options say
// so.
bool MayBePerToken(const Node& node, const QuantizeOptions& options, const Selection& selection) {
  if (!TakesRows(node) || WeightFormat(options.weights()).in_groups() || !IsOfTokens(*node.operand(0))) return false;
  return std::none_of(selection.rows.begin(), selection.rows.end(),
                      [&](const Edge& edge) { return edge.user == &node; });
}

}  // namespace

std::optional<Range> RangeOf(const std::vector<Node*>& sources, const Ranges& ranges) {
  std::optional<Range> range;
  for (const Node* source : sources) {
    const auto it = ranges.find(source->name());
    if (it == ranges.end()) return std::nullopt;
    range = range ? Union(*range, it->second) : it->second;
  }
  return range;
}

std::vector<const Node*> TokensOf(const QuantizeOptions& options, const ir::Graph& graph, const Selection& selection) {
  HashSet<const Node*> tokens;
  if (LeastCodes(options) <= 0) return {};
  for (const Node* node : selection.nodes) {
    if (MayBePerToken(*node, options, selection)) tokens.insert(node->operand(0));
    if (!IsBesideLinears(*node)) continue;
    for (const Node* value : ValuesOf(*node)) tokens.insert(value);
  }
  std::vector<const Node*> ordered;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (tokens.contains(node)) ordered.push_back(node);
  }
  return ordered;
}

Outliers FindOutliers(const QuantizeOptions& options, const Selection& selection, const Ranges& ranges,
                      const Ranges& median_features) {
  // How many codes half the features of a value have at most; nothing where it does not become codes, or is a constant.
  const auto codes_of = [&](const Node& value) -> std::optional<double> {
    const auto median = median_features.find(value.name());
    const std::optional<Range> range = RangeOf(selection.sources[selection.group_of.at(&value)], ranges);
    if (median == median_features.end() || !range || range->min == range->max) return std::nullopt;
    return (median->second.max - median->second.min) / ActivationCodes(*range, options.activations()).scale;
  };
  const auto has_few = [&](const Node& value) {
    const std::optional<double> codes = codes_of(value);
    return codes && *codes < LeastCodes(options);
  };
  Outliers outliers;
  const HashSet<const Node*> selected(selection.nodes.begin(), selection.nodes.end());
  for (const Node* node : selection.nodes) {
    if (!IsBesideLinears(*node)) continue;
    const std::vector<const Node*> values = ValuesOf(*node);
    const auto few = std::find_if(values.begin(), values.end(), [&](const Node* value) { return has_few(*value); });
    if (few == values.end()) continue;
    outliers.kept[node->name()] = absl::StrFormat(
        "kept in FP32: half the features of %%%s would have at most %.0f codes", (*few)->name(), *codes_of(**few));
  }
  for (const Node* node : selection.nodes) {
    if (!MayBePerToken(*node, options, selection) || !has_few(*node->operand(0))) continue;
    // What can only be codes has lost what a scale for each token would keep.
    const Node& source = SourceOf(*node->operand(0));
    if (selected.contains(&source) && !HasFloatResult(source) && !outliers.kept.contains(source.name())) continue;
    outliers.per_token.push_back(node->name());
  }
  return outliers;
}

}  // namespace fuselage::quantize

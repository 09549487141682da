#include "passes/equalization/equalization.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/base/hash_map.h"
#include "ir/match/properties.h"
#include "passes/equalization/channel_groups.h"
#include "passes/equalization/channel_scales.h"
#include "passes/equalization/scale_layer.h"

namespace fuselage::equalization {
namespace {

using ir::Node;
using passes::Remarks;

// A decibel: what is scaled loses its plain weights, which should gain something.
constexpr double kLeastGain = 1;

// Where by so many samples nothing gains half of that, the others are not asked.
constexpr int kFirstSamples = 8;

using Statistics = HashMap<const Node*, ChannelStatistics>;

// Statistics of what the readers read and the clamps leave in the first `most` samples; `samples`: how many there were.
absl::StatusOr<Statistics> Sample(const std::vector<ChannelGroup>& groups, const ir::Graph& graph,
                                  passes::Runner* runner, int most, int* samples) {
  if (runner == nullptr) return UsageError("equalization needs calibration data: the caller gives none");
  std::vector<const Node*> nodes;
  std::vector<ChannelStatistics> statistics;
  HashSet<const Node*> seen;
  const auto add = [&](const Node* node, int64_t channels, int axis) {
    if (!seen.insert(node).second) return;
    nodes.push_back(node);
    statistics.emplace_back(channels, axis);
  };
  for (const ChannelGroup& group : groups) {
    for (const Node* reader : group.readers) {
      const Node* value = reader->operand(0);
      add(value, group.channels, match::ChannelAxis(*reader, value->tensor_type()));
    }
    for (const auto& [clamp, max, axis] : group.clamps) add(clamp, group.channels, axis);
  }
  const auto add_all = [&](int sample, absl::Span<const Tensor* const> values) -> absl::Status {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const absl::Status status = statistics[i].Add(*values[i]);
      if (!status.ok()) return Annotate(status, absl::StrCat("sample ", sample, ": %", nodes[i]->name()));
    }
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(*samples, runner->ForFirstSamples(most, graph, nodes, add_all));
  if (*samples == 0) return UsageError("equalization needs calibration data: the calibration set is empty");
  Statistics by_node;
  for (size_t i = 0; i < nodes.size(); ++i) by_node.emplace(nodes[i], std::move(statistics[i]));
  return by_node;
}

// Where a clamp cuts a channel in the samples it stays; elsewhere its bound may come down to what they reach. Empty:
// no clamps.
std::vector<int> LimitsOf(const ChannelGroup& group, const Statistics& statistics) {
  if (group.clamps.empty()) return {};
  std::vector<int> limits(group.channels, -kLargestExponent);
  for (const auto& [clamp, max, axis] : group.clamps) {
    const ChannelStatistics& values = statistics.at(clamp);
    for (int64_t c = 0; c < group.channels; ++c) {
      if (values.max(c) > 0) limits[c] = std::max(limits[c], std::min(0, CeilingExponent(values.max(c) / max)));
    }
  }
  return limits;
}

// For each group.
std::vector<ChannelScales> ChooseAll(const std::vector<ChannelGroup>& groups, const ir::Graph& graph,
                                     const Statistics& statistics) {
  std::vector<ChannelScales> chosen;
  for (const ChannelGroup& group : groups) {
    std::vector<Reader> readers;
    for (const Node* reader : group.readers) {
      readers.push_back(
          {graph.ParameterOfOrNull(*reader, "weight"), ShapeOf(*reader).groups, &statistics.at(reader->operand(0))});
    }
    chosen.push_back(ChooseScales(readers, LimitsOf(group, statistics)));
  }
  return chosen;
}

std::string Names(const std::vector<Node*>& nodes) {
  return absl::StrJoin(nodes, ", ",
                       [](std::string* out, const Node* node) { absl::StrAppend(out, "%", node->name()); });
}

// Whom remarks are about.
const Node& Named(const ChannelGroup& group) { return group.scaled != nullptr ? *group.scaled : *group.writers[0]; }

std::string WhyNot(const ChannelGroup& group, bool narrow_clamps) {
  if (!group.why_not.empty()) return group.why_not;
  if (!group.clamps.empty() && !narrow_clamps) {
    return absl::StrCat("%", group.clamps[0].node->name(), " bounds all channels alike (see narrow_clamps)");
  }
  return "";
}

}  // namespace

absl::StatusOr<bool> Equalization::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  std::vector<ChannelGroup> groups;
  for (ChannelGroup& group : FindChannelGroups(graph)) {
    const std::string why = WhyNot(group, options_.narrow_clamps());
    if (why.empty()) {
      groups.push_back(std::move(group));
    } else {
      remarks.Missed(Named(group), absl::StrCat("its channels are not scaled: ", why));
    }
  }
  if (groups.empty()) return false;
  int samples = 0;
  const auto choose = [&](int most) -> absl::StatusOr<std::vector<ChannelScales>> {
    ASSIGN_OR_RETURN(const Statistics statistics, Sample(groups, graph, runner_, most, &samples));
    return ChooseAll(groups, graph, statistics);
  };
  ASSIGN_OR_RETURN(std::vector<ChannelScales> all_chosen, choose(kFirstSamples));
  const auto may_gain = [](const ChannelScales& chosen) { return chosen.gain_db >= kLeastGain / 2; };
  if (std::none_of(all_chosen.begin(), all_chosen.end(), may_gain)) return false;
  if (samples == kFirstSamples) {  // There may be more.
    ASSIGN_OR_RETURN(all_chosen, choose(std::numeric_limits<int>::max()));
  }
  HashMap<const Node*, LayerScales> scales;
  std::vector<std::pair<Node*, std::vector<int>>> scaled;
  for (size_t i = 0; i < groups.size(); ++i) {
    const ChannelGroup& group = groups[i];
    const ChannelScales& chosen = all_chosen[i];
    if (chosen.gain_db < kLeastGain) continue;
    for (const Node* writer : group.writers) scales[writer].rows = chosen.exponents;
    for (const Node* reader : group.readers) scales[reader].columns = chosen.exponents;
    if (group.scaled != nullptr) scaled.emplace_back(group.scaled, chosen.exponents);
    const auto [least, largest] = std::minmax_element(chosen.exponents.begin(), chosen.exponents.end());
    remarks.Applied(Named(group),
                    absl::StrFormat("channels of %s into %s scaled by 2^%d to 2^%d: %.1f dB less noise expected",
                                    Names(group.scaled != nullptr ? std::vector<Node*>{group.scaled} : group.writers),
                                    Names(group.readers), -*largest, -*least, chosen.gain_db));
  }
  for (Node* node : graph.Snapshot()) {
    const auto it = scales.find(node);
    if (it != scales.end()) RETURN_IF_ERROR(ScaleLayer(node, it->second, "equalized", graph));
  }
  for (const auto& [value, exponents] : scaled) RETURN_IF_ERROR(ScaleValue(value, exponents, graph));
  return !scales.empty();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<EqualizationOptions>(
      [](const EqualizationOptions& options, const passes::PassEnvironment& environment) {
        return std::make_unique<Equalization>(options, environment.runner);
      });
}

}  // namespace fuselage::equalization

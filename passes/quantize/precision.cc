#include "passes/quantize/precision.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "passes/core/quantized_form.h"
#include "passes/quantize/min_cut.h"

namespace fuselage::quantize {
namespace {

using ir::Node;
using passes::Profiler;

// Measurements differ by about as much from one to the next: what is not faster by more stays in INT8.
constexpr double kNoise = 0.02;
// And those of a single call by more.
constexpr double kNoiseOfACall = 0.05;

// An element is read as a code and written as a float, or the other way around.
constexpr double kConversionBytes = 5;

struct Seconds {
  double f32 = 0, int8 = 0;
  bool on_codes = true;  // In the quantized graph.
};

double Total(const std::vector<Profiler::Call>& calls) {
  double total = 0;
  for (const Profiler::Call& call : calls) total += call.seconds;
  return total;
}

bool IsConversion(const Profiler::Call& call) {
  absl::string_view op = call.op;
  absl::ConsumePrefix(&op, "int8.");
  return op == "quantize" || op == "dequantize";
}

// The selected nodes by their first source, which names what computes them in both graphs.
class Owners {
 public:
  explicit Owners(const Selection& selection) {
    for (const Node* node : selection.nodes) by_source_[node->SourcesOrSelf()[0]].push_back(node);
  }

  // Those that `call` computes.
  std::vector<const Node*> Of(const Profiler::Call& call) const {
    std::vector<const Node*> owners;
    for (const std::string& source : call.sources) {
      const auto it = by_source_.find(source);
      if (it == by_source_.end()) continue;
      for (const Node* node : it->second) {
        if (std::find(owners.begin(), owners.end(), node) == owners.end()) owners.push_back(node);
      }
    }
    return owners;
  }

 private:
  HashMap<std::string, std::vector<const Node*>> by_source_;
};

using SecondsOf = HashMap<const Node*, Seconds>;

// A call that computes several nodes counts for each by what it takes in FP32.
SecondsOf Attribute(const Selection& selection, const std::vector<Profiler::Call>& f32,
                    const std::vector<Profiler::Call>& int8) {
  SecondsOf seconds;
  for (const Node* node : selection.nodes) seconds[node] = {};
  const Owners owners(selection);
  for (const Profiler::Call& call : f32) {
    const std::vector<const Node*> nodes = owners.Of(call);
    for (const Node* node : nodes) seconds[node].f32 += call.seconds / static_cast<double>(nodes.size());
  }
  for (const Profiler::Call& call : int8) {
    if (IsConversion(call)) continue;
    const std::vector<const Node*> nodes = owners.Of(call);
    double together = 0;
    for (const Node* node : nodes) together += seconds[node].f32;
    for (const Node* node : nodes) {
      Seconds& s = seconds[node];
      s.int8 += call.seconds * (together > 0 ? s.f32 / together : 1 / static_cast<double>(nodes.size()));
      // `lower` left it as it was, between conversions.
      if (call.op == node->op()->name && !node->op()->keeps_range) s.on_codes = false;
    }
  }
  return seconds;
}

// What a conversion takes for each byte; 0 where there is none.
double SecondsPerByte(const std::vector<Profiler::Call>& calls) {
  double seconds = 0, bytes = 0;
  for (const Profiler::Call& call : calls) {
    if (!IsConversion(call)) continue;
    seconds += call.seconds;
    bytes += static_cast<double>(call.bytes);
  }
  return bytes > 0 ? seconds / bytes : 0;
}

bool IsFree(const Node& node) { return node.op() != nullptr && node.op()->view != ir::View::kNone; }

// The selected nodes that are on the FP32 side of the cheapest division.
std::vector<const Node*> CheapestInFloat(const ir::Graph& graph, const SecondsOf& seconds, double seconds_per_byte) {
  MinCut cut;  // The first side is INT8.
  HashMap<const Node*, int> index;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const int i = index[node] = cut.AddNode();
    const auto it = seconds.find(node);
    if (it != seconds.end()) {
      cut.AddCost(i, it->second.on_codes ? it->second.int8 : MinCut::kInfinite, it->second.f32);
    } else if (!IsFree(*node)) {
      cut.AddCost(i, MinCut::kInfinite, 0);
    }
  }
  for (const Node* value = graph.first(); value != nullptr; value = value->next()) {
    const bool constant = value->kind() == ir::NodeKind::kGetAttr;
    if (constant || !value->type().is_tensor() || value->tensor_type().dtype != DType::kF32) continue;
    const double conversion =
        seconds_per_byte * kConversionBytes * static_cast<double>(value->tensor_type().num_elements());
    const bool makes_floats = seconds.contains(value) && HasFloatResult(*value) && value->has_one_use();
    // However many read it on the other side, it is converted once.
    const int dequantize = cut.AddNode(), quantize = cut.AddNode();
    cut.AddCrossing(index.at(value), dequantize, makes_floats ? 0 : conversion);
    cut.AddCrossing(quantize, index.at(value), conversion);
    for (const ir::Use& use : value->uses()) {
      cut.AddCrossing(dequantize, index.at(use.user), MinCut::kInfinite);
      cut.AddCrossing(index.at(use.user), quantize, MinCut::kInfinite);
    }
  }
  const std::vector<bool> int8 = cut.FirstSide();
  std::vector<const Node*> kept;
  for (const auto& [node, times] : seconds) {
    if (!int8[index.at(node)]) kept.push_back(node);
  }
  return kept;
}

KeptInFloat WithReasons(const std::vector<const Node*>& nodes, const SecondsOf& seconds) {
  KeptInFloat kept;
  for (const Node* node : nodes) {
    const Seconds& s = seconds.at(node);
    kept[node->name()] =
        absl::StrFormat("kept in FP32: faster on the whole (%.3g ms in FP32, %.3g ms in INT8, beside conversions)",
                        1e3 * s.f32, 1e3 * s.int8);
  }
  return kept;
}

// The modules whose weights may have seven bits, with the nodes that call them.
std::map<std::string, std::vector<const Node*>> LayersOf(const Selection& selection) {
  std::map<std::string, std::vector<const Node*>> layers;
  for (const Node* node : selection.nodes) {
    if (passes::WeightsOf(*node->op()).empty()) continue;
    const ir::Module& module = *node->module();
    if (!selection.four_bits.contains(module.parameters.at("weight"))) layers[module.path].push_back(node);
  }
  return layers;
}

// Those that are faster with seven bits than with eight, whose seconds become those with seven.
SevenBits FasterWithSeven(const std::map<std::string, std::vector<const Node*>>& layers, const SecondsOf& seven,
                          SecondsOf& seconds) {
  SevenBits faster;
  for (const auto& [path, nodes] : layers) {
    double with_seven = 0, with_eight = 0;
    for (const Node* node : nodes) {
      with_seven += seven.at(node).int8;
      with_eight += seconds.at(node).int8;
    }
    if (!(with_seven < with_eight * (1 - kNoiseOfACall))) continue;
    faster[path] = absl::StrFormat("faster: %.3g ms, with eight %.3g ms", 1e3 * with_seven, 1e3 * with_eight);
    for (const Node* node : nodes) seconds.at(node).int8 = seven.at(node).int8;
  }
  return faster;
}

// The nodes of `kept` of all that are selected, the layers of `seven_bits` of all that may have such.
std::string Describe(const Precisions& precisions, size_t nodes, size_t layers) {
  std::vector<std::string> parts;
  if (!precisions.kept.empty()) parts.push_back(absl::StrCat(precisions.kept.size(), " of ", nodes, " in FP32"));
  if (!precisions.seven_bits.empty()) {
    parts.push_back(absl::StrCat("weights of ", precisions.seven_bits.size(), " of ", layers, " in seven bits"));
  }
  return absl::StrCat(precisions.kept.empty() ? "INT8" : "both", " (", absl::StrJoin(parts, ", "), ")");
}

}  // namespace

absl::StatusOr<Precisions> FastestPrecisions(const ir::Graph& graph, const Selection& selection, bool may_be_seven_bits,
                                             const MakeQuantized& make_quantized, Profiler& profiler,
                                             passes::Remarks& remarks) {
  struct Choice {
    std::string name;
    Precisions precisions;
    std::unique_ptr<ir::Graph> graph;
  };
  std::vector<Choice> choices;
  const auto add = [&](std::string name, Precisions precisions) -> absl::Status {
    ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> made, make_quantized(precisions));
    choices.push_back({std::move(name), std::move(precisions), std::move(made)});
    return absl::OkStatus();
  };
  const auto profile = [&]() -> absl::StatusOr<std::vector<std::vector<Profiler::Call>>> {
    std::vector<const ir::Graph*> graphs;
    for (const Choice& choice : choices) graphs.push_back(choice.graph.get());
    return profiler.Profile(graphs);
  };
  Precisions in_float, in_seven_bits;
  for (const Node* node : selection.nodes) in_float.kept[node->name()] = "kept in FP32";
  const auto layers = LayersOf(selection);
  for (const auto& [path, nodes] : layers) in_seven_bits.seven_bits[path] = "";
  RETURN_IF_ERROR(add("INT8", {}));
  RETURN_IF_ERROR(add("FP32", std::move(in_float)));
  const bool with_seven = may_be_seven_bits && !layers.empty();
  if (with_seven) RETURN_IF_ERROR(add("", std::move(in_seven_bits)));
  ASSIGN_OR_RETURN(std::vector<std::vector<Profiler::Call>> calls, profile());
  SecondsOf seconds = Attribute(selection, /*f32=*/calls[1], /*int8=*/calls[0]);
  choices[1].precisions.kept = WithReasons({selection.nodes.begin(), selection.nodes.end()}, seconds);
  Precisions in_codes, mixed;
  if (with_seven) {
    in_codes.seven_bits = FasterWithSeven(layers, Attribute(selection, calls[1], calls[2]), seconds);
    choices.pop_back();
    calls.pop_back();
  }
  mixed.kept = WithReasons(CheapestInFloat(graph, seconds, SecondsPerByte(calls[0])), seconds);
  mixed.seven_bits = in_codes.seven_bits;
  for (const auto& [path, nodes] : layers) {
    const auto is_kept = [&](const Node* node) { return mixed.kept.contains(node->name()); };
    if (std::any_of(nodes.begin(), nodes.end(), is_kept)) mixed.seven_bits.erase(path);
  }
  const size_t nodes = selection.nodes.size();
  if (!in_codes.seven_bits.empty()) RETURN_IF_ERROR(add(Describe(in_codes, nodes, layers.size()), in_codes));
  if (!mixed.kept.empty() && mixed.kept.size() < nodes) {
    RETURN_IF_ERROR(add(Describe(mixed, nodes, layers.size()), mixed));
  }
  if (choices.size() > 2) {
    ASSIGN_OR_RETURN(calls, profile());
  }
  size_t best = 0;
  std::string timed;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (Total(calls[i]) < Total(calls[best]) * (1 - kNoise)) best = i;
    absl::StrAppend(&timed, timed.empty() ? "" : ", ", choices[i].name, " ",
                    absl::StrFormat("%.3g ms", 1e3 * Total(calls[i])));
  }
  remarks.Note(absl::StrCat("fastest is ", choices[best].name, "; one run on one thread: ", timed));
  return std::move(choices[best].precisions);
}

}  // namespace fuselage::quantize

#include "passes/quantize/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/text.h"
#include "passes/core/kept_message.h"
#include "passes/core/quantized_form.h"
#include "passes/quantize/bias_correction.h"
#include "passes/quantize/calibration_cache.h"
#include "passes/quantize/calibration_parts.h"
#include "passes/quantize/group_weights.h"
#include "passes/quantize/observers.h"
#include "passes/quantize/outliers.h"
#include "passes/quantize/precision.h"
#include "passes/quantize/scales.h"
#include "passes/quantize/select.h"
#include "passes/quantize/transposed.h"

namespace fuselage::quantize {
namespace {

using ir::Node;
using ir::NodeKind;
using passes::Remarks;

// Counts changes of what the observers compute; a new one makes the files of the cache old.
constexpr int kCacheVersion = 3;

// The range of a value, or of its median feature.
struct Sought {
  const Node* node;
  bool median_feature = false;

  // As files name it.
  std::string Name() const { return absl::StrCat(node->name(), median_feature ? " median feature" : ""); }
};

// What to calibrate, and on what.
struct Request {
  const QuantizeOptions& options;
  const ir::Graph& graph;
  const std::vector<Sought>& sought;
  passes::Runner* runner;
  const std::string& cache_folder;
};

// One for each that is sought.
absl::StatusOr<std::vector<std::unique_ptr<Observer>>> MakeObservers(const Request& request) {
  std::vector<std::unique_ptr<Observer>> observers;
  for (const Sought& sought : request.sought) {
    if (sought.median_feature) {
      observers.push_back(std::make_unique<MedianFeatureObserver>(sought.node->tensor_type().shape.back()));
    } else {
      ASSIGN_OR_RETURN(observers.emplace_back(),
                       MakeObserver(request.options.observer(), request.options.activations()));
    }
  }
  return observers;
}

// What observers see of one part of the samples.
absl::StatusOr<CalibrationPart> ObservePart(const Request& request, int part) {
  ASSIGN_OR_RETURN(const auto observers, MakeObservers(request));
  std::vector<const Node*> nodes;  // Each once.
  HashMap<const Node*, size_t> index;
  for (const Sought& sought : request.sought) {
    if (index.emplace(sought.node, nodes.size()).second) nodes.push_back(sought.node);
  }
  CalibrationPart seen;
  const auto visit = [&](int sample, absl::Span<const Tensor* const> values) -> absl::Status {
    seen.set_samples(seen.samples() + 1);
    if (values.size() != nodes.size()) {
      return absl::InternalError(
          absl::StrCat("the runner gave ", values.size(), " values for ", nodes.size(), " nodes"));
    }
    for (size_t i = 0; i < observers.size(); ++i) {
      const Node& node = *request.sought[i].node;
      const Tensor& value = *values[index.at(&node)];
      if (value.dtype() != DType::kF32) {
        return absl::InternalError(
            absl::StrCat("%", node.name(), ": the runner gave ", ToString(value.type()), ", wanted f32"));
      }
      absl::Status status = observers[i]->Observe(value.values<float>(), sample);
      if (!status.ok()) return Annotate(status, absl::StrCat("calibration sample ", sample, ": %", node.name()));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(request.runner->ForEachSampleOfPart(part, request.graph, nodes, visit));
  for (const std::unique_ptr<Observer>& observer : observers) *seen.add_states() = observer->State();
  return seen;
}

absl::Status MergePart(const CalibrationPart& part, const std::vector<std::unique_ptr<Observer>>& observers) {
  const int wanted = static_cast<int>(observers.size());
  if (part.states_size() != wanted) {
    return absl::DataLossError(absl::StrCat("it has ", part.states_size(), " states, wanted ", wanted));
  }
  for (int i = 0; i < wanted; ++i) RETURN_IF_ERROR(observers[i]->Merge(part.states(i)));
  return absl::OkStatus();
}

// `nothing`: the state of an observer that has seen none.
CalibrationPart::Key PartsOf(const Request& request, const CalibrationCacheFile::Key& calibration,
                             const ObserverState& nothing) {
  CalibrationPart::Key key;
  *key.mutable_calibration() = calibration;
  key.mutable_calibration()->clear_observer();
  key.mutable_calibration()->clear_activations();
  *key.mutable_nothing() = nothing;
  for (const Sought& sought : request.sought) key.add_nodes(sought.Name());
  key.set_parts(request.runner->Parts());
  return key;
}

// Shows all samples to observers; where there is a cache, other processes may take parts of them.
absl::StatusOr<Calibration> ObserveSamples(const Request& request, const std::optional<CalibrationCache>& cache,
                                           Remarks& remarks) {
  ASSIGN_OR_RETURN(const auto observers, MakeObservers(request));
  Calibration calibration;
  const auto observe = [&](int part) { return ObservePart(request, part); };
  const auto merge = [&](const CalibrationPart& part) {
    calibration.samples += part.samples();
    return MergePart(part, observers);
  };
  const int parts = request.runner->Parts();
  if (parts > 1 && cache.has_value()) {
    const CalibrationPart::Key key = PartsOf(request, cache->key(), observers[0]->State());
    ASSIGN_OR_RETURN(const int here, ShareParts(request.cache_folder, key, observe, merge, remarks));
    remarks.Process(absl::StrCat("saw ", here, " of ", parts, " parts of the samples"));
  } else {
    for (int i = 0; i < parts; ++i) {
      ASSIGN_OR_RETURN(const CalibrationPart part, observe(i));
      RETURN_IF_ERROR(merge(part));
    }
  }
  if (calibration.samples == 0) {
    return UsageError("quantize needs calibration data: the calibration set is empty");
  }
  for (const std::unique_ptr<Observer>& observer : observers) calibration.ranges.push_back(observer->range());
  return calibration;
}

std::optional<CalibrationCache> CacheOrNull(const Request& request) {
  if (request.cache_folder.empty()) return std::nullopt;
  CalibrationCacheFile::Key key;
  key.set_data(request.runner->DataKey());
  if (key.data().empty()) return std::nullopt;
  key.set_version(kCacheVersion);
  key.set_graph(passes::TextFingerprint(ir::Print(request.graph)));
  *key.mutable_observer() = WithDefaults(request.options.observer());
  key.set_activations(request.options.activations());
  std::vector<std::string> names;
  for (const Sought& sought : request.sought) names.push_back(sought.Name());
  return CalibrationCache(request.cache_folder, std::move(key), std::move(names));
}

// The ranges of the nodes from the cache, or from the samples and then into the cache.
absl::StatusOr<Calibration> Calibrate(const Request& request, Remarks& remarks) {
  if (request.sought.empty()) return Calibration();
  if (request.runner == nullptr) return UsageError("quantize needs calibration data: the caller gives none");
  // Before the cache: what it holds must not hide a mistake in the options.
  RETURN_IF_ERROR(MakeObservers(request).status());
  const std::optional<CalibrationCache> cache = CacheOrNull(request);
  if (cache.has_value()) {
    absl::StatusOr<Calibration> kept = cache->Read();
    if (kept.ok()) {
      remarks.Process(absl::StrCat("ranges from cache ", cache->path()));
      return kept;
    }
    if (!absl::IsNotFound(kept.status())) {
      remarks.Process(absl::StrCat("warning: cache ", cache->path(), " is not used: ", kept.status().message()));
    }
  }
  ASSIGN_OR_RETURN(Calibration calibration, ObserveSamples(request, cache, remarks));
  if (cache.has_value()) {
    const absl::Status status = cache->Write(calibration);
    if (!status.ok()) remarks.Process(absl::StrCat("warning: the ranges are not kept: ", status.message()));
  }
  return calibration;
}

// What the samples tell of a selection.
struct Statistics {
  Ranges ranges;           // For every source of a group that an edge needs.
  Ranges median_features;  // Of `tokens`.
};

absl::StatusOr<Statistics> Sample(const QuantizeOptions& options, const ir::Graph& graph, const Selection& selection,
                                  const std::vector<const Node*>& tokens, passes::Runner* runner,
                                  const std::string& cache_folder, Remarks& remarks) {
  Statistics found;
  std::vector<Sought> sought;
  for (const Edge& edge : selection.edges) {
    for (const Node* source : selection.sources[selection.group_of.at(edge.value)]) {
      if (!found.ranges.emplace(source->name(), Range()).second) continue;
      if (source->kind() != NodeKind::kGetAttr) {
        sought.push_back({source});
        continue;
      }
      ASSIGN_OR_RETURN(const std::unique_ptr<Observer> observer,
                       MakeObserver(options.observer(), options.activations()));
      const Tensor& constant = *graph.FindParameterOrNull(source->target())->tensor;
      RETURN_IF_ERROR(Annotate(observer->Observe(constant.values<float>()), absl::StrCat("%", source->name())));
      found.ranges[source->name()] = observer->range();
    }
  }
  for (const Node* value : tokens) sought.push_back({value, /*median_feature=*/true});
  ASSIGN_OR_RETURN(const Calibration calibration, Calibrate({options, graph, sought, runner, cache_folder}, remarks));
  if (calibration.samples > 0) remarks.Note(absl::StrCat("calibrated on ", calibration.samples, " samples"));
  if (calibration.samples == 1) remarks.Note("warning: calibrated on a single sample");
  for (size_t i = 0; i < sought.size(); ++i) {
    (sought[i].median_feature ? found.median_features : found.ranges)[sought[i].node->name()] = calibration.ranges[i];
  }
  return found;
}

// Each value of a group gets the group's range as its own: where some of the group stay in FP32, the others are
// sources.
Ranges WithShared(const Selection& selection, Ranges ranges) {
  Ranges all = ranges;
  for (const auto& [node, group] : selection.group_of) {
    const std::optional<Range> range = RangeOf(selection.sources[group], ranges);
    if (range) all.emplace(node->name(), *range);
  }
  return all;
}

using CodesOf = HashMap<int, Codes>;  // By group.

CodesOf ChooseCodes(const QuantizeOptions& options, const Selection& selection, const Ranges& ranges,
                    Remarks& remarks) {
  CodesOf chosen;
  for (const Edge& edge : selection.edges) {
    const int group = selection.group_of.at(edge.value);
    if (chosen.contains(group)) continue;
    const std::vector<Node*>& sources = selection.sources[group];
    const Range range = RangeOf(sources, ranges).value();
    const Codes codes = ActivationCodes(range, options.activations());
    chosen[group] = codes;
    if (range.min == range.max && sources[0]->kind() != NodeKind::kGetAttr) {
      remarks.Note(*sources[0], absl::StrCat("warning: is ", ShortestText(range.min),
                                             " in all calibration samples; scale ", ShortestText(codes.scale)));
    }
  }
  return chosen;
}

bool IsPerToken(const Node& node, const Selection& selection) {
  return std::any_of(selection.rows.begin(), selection.rows.end(),
                     [&](const Edge& edge) { return edge.user == &node; });
}

WeightFormat FormatOf(const QuantizeOptions& options) { return {options.weights(), options.group_size()}; }

bool IsOfSevenBits(const Node& node, const Selection& selection) {
  return node.module() != nullptr && selection.seven_bits.contains(node.module()->path);
}

// What the weight of a node becomes.
WeightFormat FormatOf(const Node& node, const Selection& selection, const QuantizeOptions& options) {
  WeightFormat format = FormatOf(options);
  if (IsOfSevenBits(node, selection)) format.weights = QuantizeOptions::PER_CHANNEL_7_BITS;
  if (!IsPerToken(node, selection)) return format.in_groups() ? WeightFormat(QuantizeOptions::PER_CHANNEL) : format;
  const auto stored = selection.four_bits.find(node.module()->parameters.at("weight"));
  return stored == selection.four_bits.end() ? format : WeightFormat(QuantizeOptions::INT4, stored->second);
}

std::string Describe(const Node& node, const Selection& selection, const CodesOf& codes_of,
                     const QuantizeOptions& options) {
  std::vector<std::string> parts;
  if (IsPerToken(node, selection)) {
    parts.push_back("i8 with a scale for each row");
  } else {
    for (const int i : DataOperands(node)) {
      const Codes& codes = codes_of.at(selection.group_of.at(node.operand(i)));
      parts.push_back(absl::StrCat(DTypeName(codes.dtype), ToString(PerTensor(codes.scale, codes.zero_point))));
    }
  }
  std::string text = absl::StrCat("from ", absl::StrJoin(parts, ", "));
  if (!passes::WeightsOf(*node.op()).empty()) {
    const bool stored =
        node.module() != nullptr && selection.four_bits.contains(node.module()->parameters.at("weight"));
    absl::StrAppend(&text, "; weight ", Describe(FormatOf(node, selection, options)), stored ? ", as it was" : "");
    if (IsOfSevenBits(node, selection)) {
      absl::StrAppend(&text, ", ", selection.seven_bits.find(node.module()->path)->second);
    }
  }
  return text;
}

// A weight of a module in codes.
struct QuantizedWeight {
  ir::Module* module;
  const ir::OperandSpec* operand;
  std::vector<float> scales;
  std::shared_ptr<const Tensor> codes;
};

QuantizedWeight QuantizedOf(ir::Module* module, const ir::OperandSpec& operand, float input_scale,
                            QuantizeOptions::Weights format, const ir::Graph& graph) {
  const auto parameter = [&](const std::string& name) {
    const auto it = module->parameters.find(name);
    return it == module->parameters.end() ? nullptr : graph.FindParameterOrNull(it->second)->tensor.get();
  };
  const Tensor &weight = *parameter(operand.name), *bias = parameter("bias");
  const bool plain_bias =
      bias != nullptr && bias->dtype() == DType::kF32 && bias->num_elements() == weight.dim(operand.channel_axis);
  const bool in_steps = plain_bias && std::isfinite(input_scale);
  QuantizedWeight quantized{module, &operand, {}, nullptr};
  quantized.scales = WeightScales({&weight, in_steps ? bias : nullptr, input_scale, format, operand.channel_axis});
  quantized.codes =
      std::make_shared<const Tensor>(QuantizeWeight(weight, quantized.scales, format, operand.channel_axis));
  return quantized;
}

// Those of the modules of `nodes`, in the order of their first call.
std::vector<QuantizedWeight> QuantizeWeights(const QuantizeOptions& options, const Selection& selection,
                                             const CodesOf& codes_of, const ir::Graph& graph) {
  struct Fed {
    ir::Module* module;
    QuantizeOptions::Weights format;
    float input_scale;  // The smallest that it is fed with; infinite where only runs know it.
  };
  std::vector<Fed> modules;
  HashMap<const ir::Module*, size_t> index;
  for (const Node* node : selection.nodes) {
    if (passes::WeightsOf(*node->op()).empty()) continue;
    const WeightFormat format = FormatOf(*node, selection, options);
    if (format.in_groups()) continue;
    const bool per_token = IsPerToken(*node, selection);
    const float scale =
        per_token ? std::numeric_limits<float>::infinity() : codes_of.at(selection.group_of.at(node->operand(0))).scale;
    const auto [it, added] = index.emplace(node->module(), modules.size());
    if (added) modules.push_back({node->module(), format.weights, scale});
    modules[it->second].input_scale = std::min(modules[it->second].input_scale, scale);
  }
  std::vector<QuantizedWeight> weights;
  for (const Fed& fed : modules) {
    for (const ir::OperandSpec* operand : passes::WeightsOf(*fed.module->op)) {
      weights.push_back(QuantizedOf(fed.module, *operand, fed.input_scale, fed.format, graph));
    }
  }
  return weights;
}

using Biases = HashMap<const ir::Module*, Tensor>;

// The bias of each conv2d and linear that reads codes less their mean error and that of its own.
absl::StatusOr<Biases> CorrectedBiases(const std::vector<QuantizedWeight>& weights, const Selection& selection,
                                       const CodesOf& codes_of, const ir::Graph& graph, passes::Runner& runner,
                                       const std::string& cache_folder, Remarks& remarks) {
  std::vector<ir::Module*> modules;
  std::vector<RoundedWeight> rounded;
  for (const QuantizedWeight& weight : weights) {
    const ir::Module& module = *weight.module;
    const bool by_rows = std::any_of(module.call_sites.begin(), module.call_sites.end(),
                                     [&](const Node* call) { return IsPerToken(*call, selection); });
    if (by_rows || (module.op->name != "conv2d" && module.op->name != "linear")) continue;
    modules.push_back(weight.module);
    rounded.push_back({weight.module->path, weight.codes.get()});
  }
  Biases biases;
  if (rounded.empty()) return biases;
  const auto input_codes = [&](const Node& call) { return codes_of.at(selection.group_of.at(call.operand(0))); };
  ASSIGN_OR_RETURN(const std::vector<std::vector<double>> errors,
                   KeptMeanErrors(graph, rounded, input_codes, runner, cache_folder, remarks));
  for (size_t i = 0; i < modules.size(); ++i) {
    const auto& parameters = modules[i]->parameters;
    const auto it = parameters.find("bias");
    Tensor bias = it == parameters.end() ? Tensor(DType::kF32, {static_cast<int64_t>(errors[i].size())})
                                         : Dequantized(*graph.FindParameterOrNull(it->second)->tensor);
    for (size_t c = 0; c < errors[i].size(); ++c) {
      bias.data<float>()[c] = static_cast<float>(bias.data<float>()[c] - errors[i][c]);
    }
    biases.emplace(modules[i], std::move(bias));
  }
  return biases;
}

// Gives modules their codes, and `biases` where there are some.
absl::Status SetWeights(const std::vector<QuantizedWeight>& weights, const Biases& biases, ir::Graph& graph) {
  // Tied weights stay tied where their scales come out equal.
  std::map<std::pair<std::string, std::vector<float>>, std::string> names;
  for (const QuantizedWeight& weight : weights) {
    ir::Module* const module = weight.module;
    std::map<std::string, std::string> parameters = module->parameters;
    std::string& weight_name = parameters.at(weight.operand->name);
    std::string& name = names[{weight_name, weight.scales}];
    if (name.empty()) name = graph.AddParameter(absl::StrCat(weight_name, ".i8"), weight.codes);
    weight_name = name;
    if (const auto bias = biases.find(module); bias != biases.end()) {
      parameters["bias"] = graph.AddParameter(absl::StrCat(module->path, ".corrected_bias"),
                                              std::make_shared<const Tensor>(bias->second));
    }
    RETURN_IF_ERROR(graph.UpdateModule(module, module->op->name, module->attributes, std::move(parameters)));
  }
  return absl::OkStatus();
}

absl::Status InsertPair(const Edge& edge, const Codes& codes, ir::Graph& graph) {
  AttributeMap attributes = {{"dtype", codes.dtype}, {"scales", std::vector<double>{Spelled(codes.scale)}}};
  if (codes.zero_point != 0) attributes.emplace("zero_points", std::vector<int64_t>{codes.zero_point});
  ASSIGN_OR_RETURN(Node * quantize, graph.AddFunction(absl::StrCat(edge.value->name(), "_q"), "quantize", {edge.value},
                                                      std::move(attributes), edge.user));
  ASSIGN_OR_RETURN(Node * dequantize,
                   graph.AddFunction(absl::StrCat(edge.value->name(), "_dq"), "dequantize", {quantize}, {}, edge.user));
  // A lowered op then names what it computes: itself, its dequantizes and the quantize of its result.
  quantize->AddSources(edge.value->SourcesOrSelf());
  dequantize->AddSources(edge.user->is_call() ? edge.user->SourcesOrSelf() : edge.value->SourcesOrSelf());
  edge.user->set_operand(edge.operand, dequantize);
  return absl::OkStatus();
}

// The codes of each row and their real values: q, s = dynamic_quantize_symmetric(x); q * s. `done` has those of each
// value once.
absl::Status InsertRowScales(const Edge& edge, HashMap<const Node*, Node*>& done, ir::Graph& graph) {
  Node* const value = edge.user->operand(edge.operand);
  Node*& rows = done[value];
  if (rows == nullptr) {
    const auto add = [&](absl::string_view suffix, const char* op, std::vector<Node*> operands,
                         AttributeMap attributes) -> absl::StatusOr<Node*> {
      ASSIGN_OR_RETURN(Node * node, graph.AddFunction(absl::StrCat(edge.value->name(), suffix), op, std::move(operands),
                                                      std::move(attributes), edge.user));
      node->AddSources(edge.user->SourcesOrSelf());
      return node;
    };
    ASSIGN_OR_RETURN(Node * quantized,
                     add("_rows", "dynamic_quantize_symmetric", {value}, {{"dims", std::vector<int64_t>{-1}}}));
    ASSIGN_OR_RETURN(Node * codes, add("_q", "getitem", {quantized}, {{"index", int64_t{0}}}));
    ASSIGN_OR_RETURN(Node * scale, add("_scale", "getitem", {quantized}, {{"index", int64_t{1}}}));
    ASSIGN_OR_RETURN(Node * floats, add("_f", "to", {codes}, {{"dtype", DType::kF32}}));
    ASSIGN_OR_RETURN(rows, add("_dq", "mul", {floats, scale}, {}));
  }
  edge.user->set_operand(edge.operand, rows);
  return absl::OkStatus();
}

// `runner` null: biases stay as they are.
absl::Status Apply(const QuantizeOptions& options, const Selection& selection, const Ranges& ranges,
                   passes::Runner* runner, const std::string& cache_folder, ir::Graph& graph, Remarks& remarks) {
  const CodesOf codes_of = ChooseCodes(options, selection, ranges, remarks);
  for (const Node* node : selection.nodes) {
    remarks.Applied(*node, Describe(*node, selection, codes_of, options));
  }
  const std::vector<QuantizedWeight> weights = QuantizeWeights(options, selection, codes_of, graph);
  Biases biases;
  if (runner != nullptr) {
    ASSIGN_OR_RETURN(biases, CorrectedBiases(weights, selection, codes_of, graph, *runner, cache_folder, remarks));
  }
  for (const Edge& edge : selection.edges) {
    RETURN_IF_ERROR(InsertPair(edge, codes_of.at(selection.group_of.at(edge.value)), graph));
  }
  HashMap<const Node*, Node*> rows;
  for (const Edge& edge : selection.rows) RETURN_IF_ERROR(InsertRowScales(edge, rows, graph));
  std::vector<GroupedLinear> in_groups;
  for (Node* node : selection.nodes) {
    if (passes::WeightsOf(*node->op()).empty()) continue;
    const WeightFormat format = FormatOf(*node, selection, options);
    if (format.in_groups()) in_groups.push_back({node, format});
  }
  RETURN_IF_ERROR(UseGroupWeights(in_groups, graph));
  // Last: a module that is called elsewhere has lent its float weight to groups.
  return SetWeights(weights, biases, graph);
}

bool IsEmpty(const Selection& selection) { return selection.edges.empty() && selection.rows.empty(); }

// The graph then has other values than with all in INT8: the result of one, not its phases.
bool KeepsTransposed(const ir::Graph& graph, const KeptInFloat& kept) {
  return std::any_of(kept.begin(), kept.end(), [&](const auto& name_and_reason) {
    const Node* node = graph.FindNodeOrNull(name_and_reason.first);
    return node != nullptr && node->IsOp("conv_transpose2d");
  });
}

}  // namespace

absl::StatusOr<bool> Quantize::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!passes::IsQuantizedOp(*node)) continue;
    remarks.Note(*node, "the graph is quantized already: taken as it is, not calibrated");
    return false;
  }
  QuantizeOptions options = options_;
  const bool by_time = options.precision() == QuantizeOptions::FASTEST;
  const bool may_be_seven_bits = by_time && options.weights() == QuantizeOptions::PER_CHANNEL_7_OR_8_BITS;
  if (may_be_seven_bits) options.set_weights(QuantizeOptions::PER_CHANNEL);
  RETURN_IF_ERROR(CheckFormat(FormatOf(options)));
  FourBitWeights four_bits;
  Remarks tentative;  // What is said of a selection that samples and times may change.
  const std::unique_ptr<ir::Graph> whole = graph.Clone();
  ASSIGN_OR_RETURN(const Selection all, SelectWithTransposed(options, *whole, four_bits, tentative));
  Ranges whole_ranges;  // Of the graph with all in INT8.
  Outliers outliers;
  if (!IsEmpty(all)) {
    ASSIGN_OR_RETURN(Statistics found,
                     Sample(options, *whole, all, TokensOf(options, *whole, all), runner_, cache_folder_, remarks));
    outliers = FindOutliers(options, all, found.ranges, found.median_features);
    for (const std::string& linear : outliers.per_token) options.add_per_token(linear);
    whole_ranges = WithShared(all, std::move(found.ranges));
  }
  const auto quantize = [&](const Precisions& precisions, passes::Runner* bias_runner, ir::Graph& graph,
                            Remarks& remarks) -> absl::StatusOr<Selection> {
    KeptInFloat kept = precisions.kept;
    for (const auto& outlier : outliers.kept) kept.insert(outlier);
    ASSIGN_OR_RETURN(Selection selection, SelectWithTransposed(options, graph, four_bits, remarks, kept));
    if (IsEmpty(selection)) return selection;
    selection.seven_bits = precisions.seven_bits;
    Ranges ranges = whole_ranges;
    if (KeepsTransposed(graph, kept)) {
      ASSIGN_OR_RETURN(Statistics found, Sample(options, graph, selection, {}, runner_, cache_folder_, remarks));
      ranges = std::move(found.ranges);
    }
    RETURN_IF_ERROR(Apply(options, selection, ranges, bias_runner, cache_folder_, graph, remarks));
    return selection;
  };
  Precisions precisions;
  if (by_time && !IsEmpty(all)) {
    if (profiler_ == nullptr) {
      return UsageError("precision FASTEST needs a profiler of the CPU, and the caller gives none");
    }
    const auto quantized = [&](const Precisions& precisions) -> absl::StatusOr<std::unique_ptr<ir::Graph>> {
      std::unique_ptr<ir::Graph> copy = graph.Clone();
      RETURN_IF_ERROR(quantize(precisions, /*bias_runner=*/nullptr, *copy, tentative).status());
      return copy;
    };
    const std::unique_ptr<ir::Graph> selected = graph.Clone();
    ASSIGN_OR_RETURN(const Selection selection,
                     SelectWithTransposed(options, *selected, four_bits, tentative, outliers.kept));
    ASSIGN_OR_RETURN(precisions,
                     FastestPrecisions(*selected, selection, may_be_seven_bits, quantized, *profiler_, remarks));
  }
  const bool correct_bias = !options.has_correct_bias() || options.correct_bias();
  ASSIGN_OR_RETURN(const Selection selection, quantize(precisions, correct_bias ? runner_ : nullptr, graph, remarks));
  return !IsEmpty(selection);
}

void Register(passes::PassRegistry& registry) {
  registry.Register<QuantizeOptions>([](const QuantizeOptions& options, const passes::PassEnvironment& environment) {
    return std::make_unique<Quantize>(options, environment.runner, environment.cache_folder, environment.profiler);
  });
}

}  // namespace fuselage::quantize

#include "passes/quantize/quantize.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/quantize/scales.h"
#include "passes/quantize/select.h"

namespace fuselage::quantize {
namespace {

using ir::Node;
using ir::NodeKind;
using passes::Remarks;

// The caller's mistake: the harness exits with its code for usage, not with that for a broken model.
absl::Status UsageError(absl::string_view message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload("fuselage.usage", absl::Cord(""));
  return status;
}

bool IsQuantizedOp(const Node& node) {
  return node.IsOp("quantize") || node.IsOp("dequantize") ||
         (node.op() != nullptr && absl::StartsWith(node.op()->name, "int8."));
}

using Observers = absl::flat_hash_map<const Node*, std::unique_ptr<Observer>>;

// Shows every calibration sample to the observers of `nodes`.
absl::Status ObserveSamples(const ir::Graph& graph, const std::vector<const Node*>& nodes, passes::Runner* runner,
                            Observers& observers, Remarks& remarks) {
  if (nodes.empty()) return absl::OkStatus();
  if (runner == nullptr) return UsageError("quantize needs calibration data: the caller gives none");
  int samples = 0;
  const auto visit = [&](int sample, absl::Span<const Tensor* const> values) -> absl::Status {
    ++samples;
    if (values.size() != nodes.size()) {
      return absl::InternalError(
          absl::StrCat("the runner gave ", values.size(), " values for ", nodes.size(), " nodes"));
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (values[i]->dtype() != DType::kF32) {
        return absl::InternalError(
            absl::StrCat("%", nodes[i]->name(), ": the runner gave ", ToString(values[i]->type()), ", wanted f32"));
      }
      absl::Status status = observers[nodes[i]]->Observe(values[i]->values<float>());
      if (!status.ok()) return Annotate(status, absl::StrCat("calibration sample ", sample, ": %", nodes[i]->name()));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(runner->ForEachSample(graph, nodes, visit));
  if (samples == 0) return UsageError("quantize needs calibration data: the calibration set is empty");
  if (samples == 1) remarks.Note("warning: calibrated on a single sample");
  return absl::OkStatus();
}

absl::StatusOr<Observers> Calibrate(const QuantizeOptions& options, const ir::Graph& graph, const Selection& selection,
                                    passes::Runner* runner, Remarks& remarks) {
  Observers observers;
  std::vector<const Node*> sampled;
  for (const Edge& edge : selection.edges) {
    const Node* source = selection.range_source.at(edge.value);
    std::unique_ptr<Observer>& observer = observers[source];
    if (observer != nullptr) continue;
    ASSIGN_OR_RETURN(observer, MakeObserver(options.observer()));
    if (source->kind() == NodeKind::kGetAttr) {
      const Tensor& constant = *graph.FindParameterOrNull(source->target())->tensor;
      RETURN_IF_ERROR(Annotate(observer->Observe(constant.values<float>()), absl::StrCat("%", source->name())));
    } else {
      sampled.push_back(source);
    }
  }
  RETURN_IF_ERROR(ObserveSamples(graph, sampled, runner, observers, remarks));
  return observers;
}

using CodesOf = absl::flat_hash_map<const Node*, Codes>;  // By range source.

CodesOf ChooseCodes(const QuantizeOptions& options, const Selection& selection, const Observers& observers,
                    Remarks& remarks) {
  CodesOf chosen;
  for (const Edge& edge : selection.edges) {
    const Node* source = selection.range_source.at(edge.value);
    if (chosen.contains(source)) continue;
    const Range range = observers.at(source)->range();
    const Codes codes = ActivationCodes(range, options.activations());
    chosen[source] = codes;
    if (range.min == range.max && source->kind() != NodeKind::kGetAttr) {
      remarks.Note(*source, absl::StrCat("warning: is ", ShortestText(range.min), " in all calibration samples; scale ",
                                         ShortestText(codes.scale)));
    }
  }
  return chosen;
}

std::string Describe(const Node& node, const Selection& selection, const CodesOf& codes_of, bool per_channel) {
  std::vector<std::string> parts;
  for (const int i : DataOperands(node)) {
    const Codes& codes = codes_of.at(selection.range_source.at(node.operand(i)));
    parts.push_back(absl::StrCat(DTypeName(codes.dtype), ToString(PerTensor(codes.scale, codes.zero_point))));
  }
  std::string text = absl::StrCat("from ", absl::StrJoin(parts, ", "));
  if (node.op()->OperandIndex("weight") >= 0) {
    absl::StrAppend(&text, "; weight i8 per ", per_channel ? "channel" : "tensor");
  }
  return text;
}

// Gives the modules of `nodes` their int8 weights.
absl::Status QuantizeWeights(const QuantizeOptions& options, const Selection& selection, const CodesOf& codes_of,
                             ir::Graph& graph) {
  // Modules with the smallest scale that they are fed with, in the order of their first call.
  std::vector<std::pair<ir::Module*, float>> modules;
  absl::flat_hash_map<const ir::Module*, size_t> index;
  for (const Node* node : selection.nodes) {
    if (node->op()->OperandIndex("weight") < 0) continue;
    const float scale = codes_of.at(selection.range_source.at(node->operand(0))).scale;
    const auto [it, added] = index.emplace(node->module(), modules.size());
    if (added) modules.emplace_back(node->module(), scale);
    modules[it->second].second = std::min(modules[it->second].second, scale);
  }
  // Tied weights stay tied where their scales come out equal.
  std::map<std::pair<std::string, std::vector<float>>, std::string> names;
  for (const auto& [module, input_scale] : modules) {
    std::map<std::string, std::string> parameters = module->parameters;
    std::string& weight_name = parameters.at("weight");
    const Tensor& weight = *graph.FindParameterOrNull(weight_name)->tensor;
    const auto bias_name = parameters.find("bias");
    const Tensor* bias =
        bias_name == parameters.end() ? nullptr : graph.FindParameterOrNull(bias_name->second)->tensor.get();
    const bool plain_bias = bias != nullptr && bias->dtype() == DType::kF32 && bias->num_elements() == weight.dim(0);
    const std::vector<float> scales =
        WeightScales({&weight, plain_bias ? bias : nullptr, input_scale, options.weights()});
    std::string& name = names[{weight_name, scales}];
    if (name.empty()) {
      name = graph.AddParameter(absl::StrCat(weight_name, ".i8"),
                                std::make_shared<const Tensor>(QuantizeWeight(weight, scales, options.weights())));
    }
    weight_name = name;
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

}  // namespace

absl::StatusOr<bool> Quantize::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!IsQuantizedOp(*node)) continue;
    remarks.Note(*node, "the graph is quantized already: taken as it is, not calibrated");
    return false;
  }
  ASSIGN_OR_RETURN(const Selection selection, Select(options_, graph, remarks));
  if (selection.edges.empty()) return false;
  ASSIGN_OR_RETURN(const Observers observers, Calibrate(options_, graph, selection, runner_, remarks));
  const CodesOf codes_of = ChooseCodes(options_, selection, observers, remarks);
  for (const Node* node : selection.nodes) {
    remarks.Applied(*node, Describe(*node, selection, codes_of, options_.weights() == QuantizeOptions::PER_CHANNEL));
  }
  RETURN_IF_ERROR(QuantizeWeights(options_, selection, codes_of, graph));
  for (const Edge& edge : selection.edges) {
    RETURN_IF_ERROR(InsertPair(edge, codes_of.at(selection.range_source.at(edge.value)), graph));
  }
  return true;
}

void Register(passes::PassRegistry& registry) {
  registry.Register<QuantizeOptions>([](const QuantizeOptions& options, const passes::PassEnvironment& environment) {
    return std::make_unique<Quantize>(options, environment.runner);
  });
}

}  // namespace fuselage::quantize

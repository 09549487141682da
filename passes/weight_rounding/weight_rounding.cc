#include "passes/weight_rounding/weight_rounding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/hash_map.h"
#include "ir/match/properties.h"
#include "passes/core/quantized_form.h"
#include "passes/quantize/rows.h"
#include "passes/weight_rounding/hessian.h"

namespace fuselage::weight_rounding {
namespace {

using ir::Module;
using ir::Node;
using passes::Remarks;

constexpr double kDamping = 0.01;  // As in the paper.

// Hessians of one run over the samples take so many bytes, or one of them takes more.
constexpr int64_t kBytesTogether = int64_t{512} << 20;

// A weight, and what is multiplied by it.
struct Layer {
  Module* module;
  const Tensor* weight;
  std::vector<Node*> calls;  // In the graph's order.

  int64_t groups() const { return quantize::GroupsOf(*calls[0]); }
  int64_t size() const { return weight->num_elements() / weight->dim(0); }
  int64_t bytes() const { return groups() * size() * size() * int64_t{sizeof(double)}; }
};

using Hessians = std::vector<Hessian>;  // By group.

// Why the weight of a call stays as it is; empty where nothing speaks against it.
std::string WhyNot(const Node& call) {
  if (call.module() == nullptr) return "its weight is an operand, wanted a module's parameter (see normalize)";
  const Tensor& weight = *call.graph().ParameterOfOrNull(call, "weight");
  if (weight.dtype() != DType::kF32) return absl::StrCat("weight is ", ToString(weight.type()), ", wanted f32");
  const absl::Span<const float> values = weight.values<float>();
  if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) {
    return "weight is not finite";
  }
  const Node& input = *call.operand(0);
  if (!match::IsF32(input)) return absl::StrCat("%", input.name(), " is no float");
  if (input.kind() == ir::NodeKind::kGetAttr) return absl::StrCat("%", input.name(), " is a constant");
  return "";
}

std::vector<Layer> FindLayers(const ir::Graph& graph, Remarks& remarks) {
  std::vector<Layer> layers;
  HashMap<const Module*, size_t> index;
  HashSet<const Module*> fixed;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->IsOp("linear") && !node->IsOp("conv2d")) continue;
    const std::string why = WhyNot(*node);
    if (!why.empty()) {
      remarks.Missed(*node, absl::StrCat("its weight stays as it is: ", why));
      if (node->module() != nullptr) fixed.insert(node->module());
      continue;
    }
    const auto [it, added] = index.emplace(node->module(), layers.size());
    if (added) layers.push_back({node->module(), graph.ParameterOfOrNull(*node, "weight"), {}});
    layers[it->second].calls.push_back(node);
  }
  const auto stays = [&](const Layer& layer) {
    return fixed.contains(layer.module) || layer.weight->num_elements() == 0;
  };
  layers.erase(std::remove_if(layers.begin(), layers.end(), stays), layers.end());
  return layers;
}

// Groups along the features are for linears.
quantize::WeightFormat FormatFor(const Layer& layer, const WeightRoundingOptions& options) {
  const quantize::WeightFormat format(options.weights(), options.group_size());
  const bool channels = format.in_groups() && !layer.calls[0]->IsOp("linear");
  return channels ? quantize::WeightFormat(QuantizeOptions::PER_CHANNEL) : format;
}

absl::Status CheckFinite(const Tensor& value) {
  const absl::Span<const float> x = value.values<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return absl::InvalidArgumentError(absl::StrCat("element ", i, " is ", x[i]));
  }
  return absl::OkStatus();
}

// The Hessians of layers[begin, end), over all samples.
absl::StatusOr<std::vector<std::shared_ptr<const Hessians>>> Sample(const std::vector<Layer>& layers, size_t begin,
                                                                    size_t end, const ir::Graph& graph,
                                                                    passes::Runner& runner) {
  std::vector<const Node*> values;
  HashMap<const Node*, size_t> index;
  // What calls give that read alike: linears of one value, or one convolution.
  struct Reading {
    const Node* call;
    size_t value;
    std::shared_ptr<Hessians> sums;
  };
  std::vector<Reading> readings;
  HashMap<std::pair<size_t, const Node*>, size_t> alike;
  std::vector<std::vector<size_t>> readings_of(end - begin);  // By layer.
  for (size_t i = begin; i < end; ++i) {
    for (const Node* call : layers[i].calls) {
      const auto [value, new_value] = index.emplace(call->operand(0), values.size());
      if (new_value) values.push_back(call->operand(0));
      const Node* own = call->IsOp("linear") ? nullptr : call;
      const auto [reading, added] = alike.emplace(std::make_pair(value->second, own), readings.size());
      readings_of[i - begin].push_back(reading->second);
      if (!added) continue;
      const Hessians zeros(layers[i].groups(), Hessian(layers[i].size()));
      readings.push_back({call, value->second, std::make_shared<Hessians>(zeros)});
    }
  }
  int samples = 0;
  RETURN_IF_ERROR(
      runner.ForEachSample(graph, values, [&](int sample, absl::Span<const Tensor* const> tensors) -> absl::Status {
        ++samples;
        for (size_t i = 0; i < tensors.size(); ++i) {
          RETURN_IF_ERROR(
              Annotate(CheckFinite(*tensors[i]), absl::StrCat("sample ", sample, ": %", values[i]->name())));
        }
        for (const Reading& reading : readings) {
          quantize::ForEachRows(*reading.call, *tensors[reading.value],
                      [&](int64_t group, absl::Span<const float> rows) { (*reading.sums)[group].Add(rows); });
        }
        return absl::OkStatus();
      }));
  if (samples == 0) return UsageError("weight_rounding needs calibration data: the calibration set is empty");
  std::vector<std::shared_ptr<const Hessians>> hessians;
  for (const std::vector<size_t>& of_layer : readings_of) {
    std::shared_ptr<Hessians> sums = readings[of_layer[0]].sums;
    if (of_layer.size() > 1) sums = std::make_shared<Hessians>(*sums);
    for (size_t i = 1; i < of_layer.size(); ++i) {
      for (size_t g = 0; g < sums->size(); ++g) (*sums)[g].Add((*readings[of_layer[i]].sums)[g]);
    }
    hessians.push_back(std::move(sums));
  }
  return hessians;
}

// Without inputs all columns are alike, and each is rounded to what is nearest.
std::vector<Factor> FactorsOf(const Hessians& hessians, double damping) {
  std::vector<Factor> factors;
  for (const Hessian& hessian : hessians) {
    const double mean = hessian.MeanOfDiagonal();
    factors.emplace_back(hessian, mean > 0 ? damping * mean : 1);
  }
  return factors;
}

bool IsQuantized(const ir::Graph& graph, Remarks& remarks) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!passes::IsQuantizedOp(*node)) continue;
    remarks.Note(*node, "the graph is quantized already: its weights stay as they are");
    return true;
  }
  return false;
}

absl::Status SetWeight(Module* module, Tensor weight, ir::Graph& graph) {
  std::map<std::string, std::string> parameters = module->parameters;
  parameters["weight"] = graph.AddParameter(absl::StrCat(module->path, ".rounded_weight"),
                                            std::make_shared<const Tensor>(std::move(weight)));
  return graph.UpdateModule(module, module->op->name, module->attributes, std::move(parameters));
}

}  // namespace

absl::StatusOr<bool> WeightRounding::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  if (!(options_.damping() >= 0 && std::isfinite(options_.damping()))) {
    return absl::InvalidArgumentError(absl::StrCat("damping is ", options_.damping(), ", wanted at least 0"));
  }
  RETURN_IF_ERROR(quantize::CheckFormat({options_.weights(), options_.group_size()}));
  if (IsQuantized(graph, remarks)) return false;
  const std::vector<Layer> layers = FindLayers(graph, remarks);
  if (layers.empty()) return false;
  if (runner_ == nullptr) return UsageError("weight_rounding needs calibration data: the caller gives none");
  std::vector<Tensor> weights(layers.size());
  for (size_t begin = 0, end = 0; begin < layers.size(); begin = end) {
    for (int64_t sum = layers[end++].bytes(); end < layers.size() && sum + layers[end].bytes() <= kBytesTogether;) {
      sum += layers[end++].bytes();
    }
    ASSIGN_OR_RETURN(const auto hessians, Sample(layers, begin, end, graph, *runner_));
    for (size_t i = begin; i < end; ++i) {
      const Layer& layer = layers[i];
      const quantize::WeightGrid grid(*layer.weight, FormatFor(layer, options_));
      const double damping = options_.damping() > 0 ? options_.damping() : kDamping;
      Rounding rounding = Round(*layer.weight, grid, FactorsOf(*hessians[i - begin], damping));
      if (rounding.weight.SameBytes(*layer.weight)) continue;
      const auto snr = [&](double noise) { return 10 * std::log10(rounding.signal / noise); };
      remarks.Applied(*layer.calls[0],
                      rounding.signal > 0
                          ? absl::StrFormat("output SNR on the samples by its weight's codes: %.1f dB rounded to "
                                            "nearest, %.1f dB for the outputs",
                                            snr(rounding.nearest), snr(rounding.rounded))
                          : "its outputs are zero in all samples: its weight is rounded to nearest");
      weights[i] = std::move(rounding.weight);
    }
  }
  bool changed = false;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (weights[i].num_elements() == 0) continue;
    RETURN_IF_ERROR(SetWeight(layers[i].module, std::move(weights[i]), graph));
    changed = true;
  }
  return changed;
}

absl::Status WeightRounding::Ensures(const ir::Graph& graph) const {
  Remarks ignored;
  if (IsQuantized(graph, ignored)) return absl::OkStatus();
  for (const Layer& layer : FindLayers(graph, ignored)) {
    if (quantize::Rounded(*layer.weight, FormatFor(layer, options_)).SameBytes(*layer.weight)) continue;
    return absl::InternalError(absl::StrCat("the weight of %", layer.calls[0]->name(), " has values that no code has"));
  }
  return absl::OkStatus();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<WeightRoundingOptions>(
      [](const WeightRoundingOptions& options, const passes::PassEnvironment& environment) {
        return std::make_unique<WeightRounding>(options, environment.runner);
      });
}

}  // namespace fuselage::weight_rounding

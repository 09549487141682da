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
#include "passes/core/quantized_form.h"
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

  int64_t size() const { return weight->dim(1); }
};

bool IsF32(const TensorType& type) { return type.dtype == DType::kF32 && !type.quant; }

// Why the weight of a call stays as it is; empty where nothing speaks against it.
std::string WhyNot(const Node& call) {
  if (call.module() == nullptr) return "its weight is an operand, wanted a module's parameter (see normalize)";
  const Tensor& weight = *call.graph().ParameterOfOrNull(call, "weight");
  if (!IsF32(weight.type())) return absl::StrCat("weight is ", ToString(weight.type()), ", wanted f32");
  const absl::Span<const float> values = weight.values<float>();
  if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) {
    return "weight is not finite";
  }
  const Node& input = *call.operand(0);
  if (!IsF32(input.tensor_type())) return absl::StrCat("%", input.name(), " is no float");
  if (input.kind() == ir::NodeKind::kGetAttr) return absl::StrCat("%", input.name(), " is a constant");
  return "";
}

std::vector<Layer> FindLayers(const ir::Graph& graph, Remarks& remarks) {
  std::vector<Layer> layers;
  HashMap<const Module*, size_t> index;
  HashSet<const Module*> fixed;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->IsOp("linear")) continue;
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

// Of layers[begin, end), over all samples.
absl::StatusOr<std::vector<Hessian>> Sample(const std::vector<Layer>& layers, size_t begin, size_t end,
                                            const ir::Graph& graph, passes::Runner& runner) {
  // Layers that read the same values share what these give.
  std::vector<const Node*> values;
  HashMap<const Node*, size_t> index;
  std::vector<Hessian> sums;
  for (size_t i = begin; i < end; ++i) {
    for (const Node* call : layers[i].calls) {
      if (!index.emplace(call->operand(0), values.size()).second) continue;
      values.push_back(call->operand(0));
      sums.emplace_back(layers[i].size());
    }
  }
  int samples = 0;
  RETURN_IF_ERROR(
      runner.ForEachSample(graph, values, [&](int sample, absl::Span<const Tensor* const> tensors) -> absl::Status {
        ++samples;
        for (size_t i = 0; i < tensors.size(); ++i) {
          const absl::Status status = sums[i].Add(*tensors[i]);
          if (!status.ok()) return Annotate(status, absl::StrCat("sample ", sample, ": %", values[i]->name()));
        }
        return absl::OkStatus();
      }));
  if (samples == 0) return UsageError("weight_rounding needs calibration data: the calibration set is empty");
  std::vector<Hessian> hessians;
  for (size_t i = begin; i < end; ++i) {
    hessians.emplace_back(layers[i].size());
    for (const Node* call : layers[i].calls) hessians.back().Add(sums[index.at(call->operand(0))]);
  }
  return hessians;
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
  const quantize::WeightFormat format(options_.weights(), options_.group_size());
  RETURN_IF_ERROR(quantize::CheckFormat(format));
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!passes::IsQuantizedOp(*node)) continue;
    remarks.Note(*node, "the graph is quantized already: its weights stay as they are");
    return false;
  }
  const std::vector<Layer> layers = FindLayers(graph, remarks);
  if (layers.empty()) return false;
  if (runner_ == nullptr) return UsageError("weight_rounding needs calibration data: the caller gives none");
  std::vector<Tensor> weights(layers.size());
  for (size_t begin = 0, end = 0; begin < layers.size(); begin = end) {
    const auto bytes = [&](size_t i) { return layers[i].size() * layers[i].size() * int64_t{sizeof(double)}; };
    for (int64_t sum = bytes(end++); end < layers.size() && sum + bytes(end) <= kBytesTogether;) sum += bytes(end++);
    ASSIGN_OR_RETURN(const std::vector<Hessian> hessians, Sample(layers, begin, end, graph, *runner_));
    for (size_t i = begin; i < end; ++i) {
      const Hessian& hessian = hessians[i - begin];
      const double mean = hessian.MeanOfDiagonal();
      const Node& call = *layers[i].calls[0];
      if (!std::isnormal(mean)) {
        remarks.Missed(call, "its weight stays as it is: its input is next to zero, or too large, in all samples");
        continue;
      }
      const quantize::WeightGrid grid(*layers[i].weight, format);
      const double damping = (options_.damping() > 0 ? options_.damping() : kDamping) * mean;
      Rounding rounding = Round(*layers[i].weight, grid, Factor(hessian, damping));
      if (rounding.weight.SameBytes(*layers[i].weight)) continue;
      const auto snr = [&](double noise) { return 10 * std::log10(rounding.signal / noise); };
      remarks.Applied(call, absl::StrFormat("output SNR on the samples by its weight's codes: %.1f dB rounded to "
                                            "nearest, %.1f dB for the outputs",
                                            snr(rounding.nearest), snr(rounding.rounded)));
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

void Register(passes::PassRegistry& registry) {
  registry.Register<WeightRoundingOptions>(
      [](const WeightRoundingOptions& options, const passes::PassEnvironment& environment) {
        return std::make_unique<WeightRounding>(options, environment.runner);
      });
}

}  // namespace fuselage::weight_rounding

#include "passes/quantize/bias_correction.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/match/properties.h"

namespace fuselage::quantize {
namespace {

using ir::Node;

Tensor Difference(const Tensor& codes, const Tensor& weight) {
  Tensor difference = Dequantized(codes);
  for (int64_t i = 0; i < weight.num_elements(); ++i) difference.data<float>()[i] -= weight.data<float>()[i];
  return difference;
}

// The module's layer with the error of its weight, on what each call site reads: the mean of each output channel.
absl::StatusOr<std::vector<Node*>> AddErrors(const RoundedWeight& rounded, ir::Graph& graph) {
  const ir::Module& module = *graph.FindModuleOrNull(rounded.module);
  const std::string error = graph.UniqueModulePath(absl::StrCat(rounded.module, ".error"));
  const Tensor& weight = *graph.FindParameterOrNull(module.parameters.at("weight"))->tensor;
  AttributeMap attributes = module.attributes;
  attributes.erase("activation");
  const std::string name =
      graph.AddParameter(error, std::make_shared<const Tensor>(Difference(*rounded.codes, weight)));
  RETURN_IF_ERROR(graph.AddModule(error, module.op->name, std::move(attributes), {{"weight", name}}).status());
  std::vector<Node*> means;
  for (Node* node : graph.Snapshot()) {
    if (node->module() != &module) continue;
    ASSIGN_OR_RETURN(Node * call, graph.AddModuleCall(error, error, {node->operand(0)}));
    const int rank = call->tensor_type().rank(), channels = match::ChannelAxis(*call, call->tensor_type());
    std::vector<int64_t> dims;
    for (int axis = 0; axis < rank; ++axis) {
      if (axis != channels) dims.push_back(axis);
    }
    ASSIGN_OR_RETURN(means.emplace_back(), graph.AddFunction(error, "mean", {call}, {{"dims", std::move(dims)}}));
  }
  return means;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<double>>> MeanErrors(const ir::Graph& graph,
                                                            absl::Span<const RoundedWeight> weights,
                                                            passes::Runner& runner) {
  const std::unique_ptr<ir::Graph> copy = graph.Clone();
  std::vector<const Node*> nodes;
  std::vector<size_t> weight_of;  // By node.
  std::vector<std::vector<double>> errors(weights.size());
  std::vector<int64_t> counts(weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<Node*> means, AddErrors(weights[i], *copy));
    for (Node* mean : means) copy->AppendOutput(mean);
    nodes.insert(nodes.end(), means.begin(), means.end());
    weight_of.insert(weight_of.end(), means.size(), i);
    errors[i].resize(weights[i].codes->dim(0));
  }
  RETURN_IF_ERROR(
      runner.ForEachSample(*copy, nodes, [&](int /*sample*/, absl::Span<const Tensor* const> means) -> absl::Status {
        for (size_t n = 0; n < means.size(); ++n) {
          std::vector<double>& sums = errors[weight_of[n]];
          for (size_t c = 0; c < sums.size(); ++c) sums[c] += means[n]->data<float>()[c];
          ++counts[weight_of[n]];
        }
        return absl::OkStatus();
      }));
  for (size_t i = 0; i < errors.size(); ++i) {
    for (double& error : errors[i]) error /= static_cast<double>(counts[i]);
  }
  return errors;
}

}  // namespace fuselage::quantize

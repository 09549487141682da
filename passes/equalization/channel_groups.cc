#include "passes/equalization/channel_groups.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/hash_map.h"
#include "ir/match/channel_affine.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"

namespace fuselage::equalization {
namespace {

using ir::Node;

// Why the weights of `layer` cannot be scaled; empty where they can.
std::string WhyFixed(const Node& layer) {
  if (layer.module() == nullptr) return absl::StrCat("%", layer.name(), " is no call_module (run normalize first)");
  const std::string shared = match::SharedModule(layer);
  if (!shared.empty()) return shared;
  const int64_t outputs = layer.graph().ParameterOfOrNull(layer, "weight")->dim(0);
  for (const char* name : {"weight", "bias"}) {
    const Tensor* tensor = layer.graph().ParameterOfOrNull(layer, name);
    if (tensor == nullptr) continue;
    if (tensor->dtype() != DType::kF32) return absl::StrCat("the ", name, " of %", layer.name(), " is not f32");
    if (tensor->dim(0) != outputs) return absl::StrCat("the bias of %", layer.name(), " is no value a channel");
  }
  return "";
}

// What the op itself does to its result at last.
Activation ActivationOf(const Node& node) {
  if (node.op()->FindAttributeOrNull("activation") == nullptr) return {};
  return *ParseActivation(node.attribute("activation").as_string());
}

bool IsHomogeneous(const Activation& activation) {
  const bool leaky_relu = activation.is_function() && activation.function->op == ElementwiseOp::kLeakyRelu;
  return activation.is_none() || activation.is_relu() || leaky_relu;
}

bool IsFromZero(const Activation& clamp) {
  return clamp.is_clamp() && clamp.min == 0 && clamp.max > 0 && std::isfinite(clamp.max);
}

// Each step by itself, where the node is a chain of such.
bool HasHomogeneousSteps(const Node& node) {
  if (!node.IsOp("fused_elementwise")) return node.op()->homogeneous;
  const auto steps = ParseElementwiseSteps(node.attribute("steps").as_strings(), node.num_operands());
  return steps.ok() && std::all_of(steps->begin(), steps->end(), [&](const ElementwiseStep& step) {
    const ir::OpSchema* op = node.graph().ops().FindOrNull(step.op);
    return op != nullptr && op->homogeneous;
  });
}

// Why a positive factor of an operand's channel is none of the result's; empty where it is.
std::string WhyNotHomogeneous(const Node& node) {
  const std::string name = absl::StrCat("%", node.name());
  const Activation activation = ActivationOf(node);
  if (!IsHomogeneous(activation)) return absl::StrCat(name, " has the activation ", ToString(activation));
  if (HasHomogeneousSteps(node) || node.op()->view == ir::View::kSameOrder || node.IsOp("permute")) return "";
  return absl::StrCat(name, " is no multiple of it");
}

bool IsClampFromZero(const Node& node) {
  return node.IsOp("clamp") && IsFromZero({static_cast<float>(node.attribute("min").as_float()),
                                           static_cast<float>(node.attribute("max").as_float())});
}

struct Channels {
  int group, axis;
};

// Where the channels on `axis` of an operand of type `from` are in the result of `node`; nothing where they are not.
std::optional<int> AxisInResult(const Node& node, const TensorType& from, int axis) {
  const Shape& to = node.tensor_type().shape;
  if (node.IsOp("permute")) {
    const std::vector<int64_t>& dims = node.attribute("dims").as_ints();
    for (size_t i = 0; i < dims.size(); ++i) {
      if ((dims[i] + from.rank()) % from.rank() == axis) return static_cast<int>(i);
    }
    return std::nullopt;
  }
  if (node.op()->view != ir::View::kSameOrder) {
    // Pools and the like mix neighbours on the axes behind the channels.
    const bool stays = from.shape.size() == to.size() && to[axis] == from.shape[axis];
    return stays && (node.op()->elementwise || axis <= 1) ? std::optional<int>(axis) : std::nullopt;
  }
  const auto product = [](const Shape& shape, int end) {
    return std::accumulate(shape.begin(), shape.begin() + end, int64_t{1}, std::multiplies<int64_t>());
  };
  for (int i = 0; i < static_cast<int>(to.size()); ++i) {
    if (to[i] == from.shape[axis] && product(to, i) == product(from.shape, axis)) return i;
  }
  return std::nullopt;
}

// Whether a product with the node's result is part of a conv2d's rounding in INT8 (match::LayerInFrontOrNull): the node
// is a conv2d with an activation that is no clamp, or that activation, or scales and shifts its channels behind that.
bool IsScaledForNothing(const Node& node) {
  if (!node.is_call() || node.op() == nullptr || node.num_operands() == 0) return false;
  if (const auto affine = match::ChannelAffineOf(node))
    return affine->of->has_one_use() && IsScaledForNothing(*affine->of);
  if (node.IsOp("conv2d")) return node.num_operands() == 1 && ActivationOf(node).is_function();
  const Node& layer = *node.operand(0);
  return layer.IsOp("conv2d") && layer.has_one_use() && layer.num_operands() == 1 && ActivationOf(layer).is_none() &&
         !FunctionOf(node.op()->name, node.attributes()).is_clamp();
}

class Finder {
 public:
  std::vector<ChannelGroup> Run(const ir::Graph& graph) {
    for (Node* node = graph.first(); node != nullptr; node = node->next()) Visit(node);
    std::vector<ChannelGroup> found;
    for (ChannelGroup& group : groups_) {
      const bool written = !group.writers.empty() || group.scaled != nullptr;
      if (written && !group.readers.empty()) found.push_back(std::move(group));
    }
    return found;
  }

 private:
  void Visit(Node* node) {
    if (node->op() != nullptr && (match::IsConvolution(*node) || node->IsOp("linear"))) {
      VisitLayer(node);
    } else if (node->op() != nullptr && match::IsF32(*node)) {
      Follow(node);
    } else {
      BlockOperands(*node, node->is_call() ? absl::StrCat("%", node->name(), " reads it")
                                           : absl::StrCat("it is a graph ", NodeKindName(node->kind())));
    }
  }

  void VisitLayer(Node* layer) {
    std::string why = match::IsF32(*layer) && match::IsF32(*layer->operand(0)) ? WhyFixed(*layer) : "it is quantized";
    const auto input = channels_.find(layer->operand(0));
    if (why.empty() && input != channels_.end() &&
        input->second.axis == match::ChannelAxis(*layer, layer->operand(0)->tensor_type())) {
      groups_[Find(input->second.group)].readers.push_back(layer);
    } else {
      Block(layer->operand(0), why.empty() ? absl::StrCat("%", layer->name(), " reads it by another axis") : why);
    }
    if (!why.empty()) return BlockOperands(*layer, why);
    const Activation activation = ActivationOf(*layer);
    const int axis = match::ChannelAxis(*layer, layer->tensor_type());
    ChannelGroup group;
    group.channels = ShapeOf(*layer).outputs;
    if (IsFromZero(activation)) {
      group.clamps.push_back({layer, activation.max, axis});
    } else if (!IsHomogeneous(activation)) {
      if (IsScaledForNothing(*layer)) {
        group.scaled = layer;
      } else {
        group.why_not = absl::StrCat("%", layer->name(), " has the activation ", ToString(activation));
      }
    }
    if (group.scaled == nullptr) group.writers = {layer};
    Add(layer, axis, std::move(group));
    if (layer->num_operands() > 1) AddResidual(layer);
  }

  void AddResidual(const Node* layer) {
    const Channels result = channels_.at(layer);
    const auto residual = channels_.find(layer->operand(1));
    if (residual != channels_.end() && residual->second.axis == result.axis) {
      Join(result.group, residual->second.group);
    } else {
      Block(layer, absl::StrCat("%", layer->name(), " mixes it with others"));
      Block(layer->operand(1), absl::StrCat("%", layer->name(), " mixes it with others"));
    }
  }

  void Add(const Node* value, int axis, ChannelGroup group) {
    channels_[value] = {static_cast<int>(groups_.size()), axis};
    parents_.push_back(static_cast<int>(groups_.size()));
    groups_.push_back(std::move(group));
  }

  // The result has the channels of its operands.
  void Follow(Node* node) {
    const bool factor_passes = !match::ChannelAffineOf(*node) && WhyNotHomogeneous(*node).empty();
    if (!factor_passes && IsScaledForNothing(*node)) {
      BlockOperands(*node, absl::StrCat("%", node->name(), " is scaled in its place"));
      ChannelGroup group;
      group.channels = node->tensor_type().shape[1];
      group.scaled = node;
      return Add(node, 1, std::move(group));
    }
    std::string why = IsClampFromZero(*node) ? "" : WhyNotHomogeneous(*node);
    std::optional<Channels> result;
    for (const ir::Argument& argument : node->arguments()) {
      if (!why.empty() || argument.spec->parameter || argument.value == nullptr) continue;
      const auto it = channels_.find(argument.value);
      const std::optional<int> axis =
          it == channels_.end() ? std::nullopt : AxisInResult(*node, argument.value->tensor_type(), it->second.axis);
      if (!axis.has_value() || (result.has_value() && result->axis != *axis)) {
        why = absl::StrCat("%", node->name(), " mixes it with others");
      } else if (!result.has_value()) {
        result = Channels{it->second.group, *axis};
      } else {
        Join(result->group, it->second.group);
      }
    }
    if (!why.empty() || !result.has_value()) return BlockOperands(*node, why);
    if (IsClampFromZero(*node)) {
      const auto max = static_cast<float>(node->attribute("max").as_float());
      groups_[Find(result->group)].clamps.push_back({node, max, result->axis});
    }
    channels_[node] = *result;
  }

  void BlockOperands(const Node& node, const std::string& why) {
    for (int i = 0; i < node.num_operands(); ++i) {
      if (node.operand(i) != nullptr) Block(node.operand(i), why);
    }
  }

  void Block(const Node* value, const std::string& why) {
    const auto it = channels_.find(value);
    if (it == channels_.end()) return;
    ChannelGroup& group = groups_[Find(it->second.group)];
    if (group.why_not.empty()) group.why_not = why;
  }

  int Find(int group) {
    while (parents_[group] != group) group = parents_[group] = parents_[parents_[group]];
    return group;
  }

  // The lower one stands for both.
  void Join(int a, int b) {
    a = Find(a);
    b = Find(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    parents_[b] = a;
    ChannelGroup from = std::move(groups_[b]);
    groups_[b] = ChannelGroup();
    ChannelGroup& to = groups_[a];
    to.writers.insert(to.writers.end(), from.writers.begin(), from.writers.end());
    to.readers.insert(to.readers.end(), from.readers.begin(), from.readers.end());
    to.clamps.insert(to.clamps.end(), from.clamps.begin(), from.clamps.end());
    if (to.why_not.empty()) to.why_not = from.why_not;
    if (to.why_not.empty() && (to.scaled != nullptr || from.scaled != nullptr)) {
      to.why_not = absl::StrCat("%", (to.scaled != nullptr ? to : from).scaled->name(), " is added to others");
    }
  }

  HashMap<const Node*, Channels> channels_;
  std::vector<ChannelGroup> groups_;
  std::vector<int> parents_;  // Disjoint sets of groups.
};

}  // namespace

LayerShape ShapeOf(const Node& layer) {
  const Tensor& weight = *layer.graph().ParameterOfOrNull(layer, "weight");
  const int64_t outputs = weight.dim(0), inputs = weight.dim(1);
  const bool grouped = layer.op()->FindAttributeOrNull("groups") != nullptr;
  const int64_t pairs = outputs * inputs;
  return {outputs, inputs, pairs == 0 ? 0 : weight.num_elements() / pairs,
          grouped ? layer.attribute("groups").as_int() : 1};
}

std::vector<ChannelGroup> FindChannelGroups(const ir::Graph& graph) { return Finder().Run(graph); }

}  // namespace fuselage::equalization

#include "passes/conv_bn/conv_bn.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/match/in_place.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"
#include "passes/conv_bn/fold.h"
#include "passes/conv_bn/layers.h"
#include "passes/conv_bn/sums.h"

namespace fuselage::conv_bn {
namespace {

using ir::Node;
using passes::Remarks;

// A node that is affine along an axis of its input; along every axis, where `affine` is one number's.
struct ChannelMap {
  Node* input = nullptr;
  int axis = 1;
  Affine affine;

  // The map for so many channels along the layer's axis.
  Affine Over(int64_t channels) const {
    if (axis != kEveryAxis) return affine;
    return {std::vector<double>(channels, affine.scale[0]), std::vector<double>(channels, affine.shift[0])};
  }
};

// Of floats, and not in place.
bool Scales(const Node& node) {
  const bool in_place = node.kind() != ir::NodeKind::kCallModule && node.is_call() && match::IsInPlace(node.target());
  return (node.IsOp("mul") || node.IsOp("div")) && match::IsF32(node) && !in_place;
}

// x, where `node` is x times, by or plus a constant and has x's type; null elsewhere.
Node* MappedOrNull(const Node& node) {
  if (!IsSum(node) && !Scales(node)) return nullptr;
  for (const int side : {0, 1}) {
    if (node.IsOp("div") && side == 1) break;
    Node* x = node.operand(side);
    const Node& constant = *node.operand(1 - side);
    if (constant.kind() == ir::NodeKind::kGetAttr && x->type() == node.type()) return x;
  }
  return nullptr;
}

// What is folded, or left with a remark: batch norms, and products and sums with a constant. Null for others.
Node* InputOrNull(const Node& node) { return node.IsOp("batch_norm") ? node.operand(0) : MappedOrNull(node); }

// The constant that the product or sum of `x` is with; why it is none for each channel, or empty.
std::string WhyNotByChannel(const Node& node, const Node& x, ChannelMap* map) {
  const Node& constant = *node.operand(node.operand(0) == &x ? 1 : 0);
  const Tensor& numbers = *node.graph().FindParameterOrNull(constant.target())->tensor;
  if (numbers.type().quant) return absl::StrCat("%", constant.name(), " is quantized");
  map->axis = kEveryAxis;
  for (int i = 0; i < numbers.rank(); ++i) {
    if (numbers.dim(i) == 1) continue;
    if (map->axis != kEveryAxis) return absl::StrCat("%", constant.name(), " varies along more than one axis");
    map->axis = i + node.tensor_type().rank() - numbers.rank();
  }
  std::vector<double> values = ToDoubles(numbers);
  if (node.IsOp("div")) {
    for (double& value : values) value = 1 / value;
  }
  map->affine = Scales(node) ? Affine{values, std::vector<double>(values.size(), 0)}
                             : Affine{std::vector<double>(values.size(), 1), values};
  return "";
}

// Why `bn` is not a constant affine map; empty where it is.
std::string WhyNotConstant(const Node& bn, BatchNormStatistics* statistics) {
  const ir::Graph& graph = bn.graph();
  if (bn.attribute("training").as_bool()) return "it is in training mode";
  statistics->weight = graph.ParameterOfOrNull(bn, "weight");
  statistics->bias = graph.ParameterOfOrNull(bn, "bias");
  statistics->mean = graph.ParameterOfOrNull(bn, "running_mean");
  statistics->variance = graph.ParameterOfOrNull(bn, "running_var");
  statistics->eps = bn.attribute("eps").as_float();
  for (int i = 1; i < bn.num_operands(); ++i) {
    if (bn.module() == nullptr && bn.operand(i) != nullptr && bn.operand(i)->kind() != ir::NodeKind::kGetAttr) {
      return absl::StrCat("its ", bn.op()->operands[i].name, " is computed by %", bn.operand(i)->name());
    }
  }
  if (statistics->mean == nullptr || statistics->variance == nullptr) return "it has no running statistics";
  for (const Tensor* t : {statistics->weight, statistics->bias, statistics->mean, statistics->variance}) {
    if (t != nullptr && t->type().quant) return "its parameters are quantized";
  }
  for (int64_t c = 0; c < statistics->variance->num_elements(); ++c) {
    const double variance = statistics->variance->At(c) + statistics->eps;
    if (!(variance > 0)) return absl::StrCat("variance + eps is ", variance, " in channel ", c);
  }
  return "";
}

// Gives the layer its new weights, and takes `node` out of the graph.
absl::Status Apply(ir::Graph& graph, Node* layer, Node* node, Node* input, Folded folded) {
  RETURN_IF_ERROR(SetWeights(graph, layer, std::move(folded), /*has_bias=*/!Scales(*node)));
  layer->AddSources(layer->SourcesOrSelf());
  layer->AddSources(node->SourcesOrSelf());
  node->ReplaceAllUsesWith(input);
  graph.Erase(node);
  return absl::OkStatus();
}

// Makes a batch norm that stands alone a depthwise convolution. Why not, where it declines.
absl::StatusOr<std::string> MakeDepthwise(ir::Graph& graph, Node* bn, const Affine& affine) {
  if (bn->module() == nullptr) return absl::StrCat("%", bn->name(), " is no call_module (run normalize first)");
  const TensorType& type = bn->tensor_type();
  if (type.rank() != 4 || type.dtype != DType::kF32 || type.num_elements() == 0) {
    return absl::StrCat("its result is ", ToString(type), ", a depthwise convolution's an f32 of rank 4 with elements");
  }
  std::string why = match::SharedModule(*bn);
  if (!why.empty()) return why;
  Folded weights = Depthwise(affine);
  if (!IsValid(weights)) return "its scales are not finite";
  ir::Module* module = bn->module();
  const auto add = [&](absl::string_view name, Tensor tensor) {
    return graph.AddParameter(absl::StrCat(module->path, ".", name), std::make_shared<const Tensor>(std::move(tensor)));
  };
  const std::string weight = add("folded_weight", std::move(weights.weight));
  const std::string bias = add("folded_bias", std::move(weights.bias));
  const int64_t groups = static_cast<int64_t>(affine.scale.size());
  RETURN_IF_ERROR(graph.UpdateModule(module, "conv2d", {{"groups", groups}}, {{"weight", weight}, {"bias", bias}}));
  return why;
}

bool IsPadded(const Node& conv) {
  if (conv.IsOp("linear")) return false;
  const std::vector<int64_t>& padding = conv.attribute("padding").as_ints();
  return std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p != 0; });
}

// The axis of a view's operand that `axis` of its result is; none where it is a part of one, or several are.
std::optional<int> AxisOfOperand(const Node& view, int axis) {
  if (axis == kEveryAxis) return axis;
  const Shape &from = view.operand(0)->tensor_type().shape, &to = view.tensor_type().shape;
  if (view.IsOp("permute")) {
    const int64_t dim = view.attribute("dims").as_ints()[axis];
    return static_cast<int>(dim < 0 ? dim + view.tensor_type().rank() : dim);
  }
  const auto behind = [](const Shape& shape, int i) {
    return std::accumulate(shape.begin() + i + 1, shape.end(), int64_t{1}, std::multiplies<>());
  };
  for (int i = 0; i < static_cast<int>(from.size()); ++i) {
    if (from[i] == to[axis] && behind(from, i) == behind(to, axis)) return i;
  }
  return std::nullopt;
}

bool MovesChannels(const Node& node) {
  return node.is_call() && (node.IsOp("permute") || node.op()->view == ir::View::kSameOrder) && node.has_one_use();
}

// f(s * x) = s * f(x) for s > 0: a relu, of one value.
bool IsHomogeneous(const Node& node) {
  return node.is_call() && node.op()->homogeneous && node.op()->elementwise && node.num_operands() == 1 &&
         match::IsF32(node) && node.has_one_use();
}

// map(layer(x)) => layer'(x), map(view(layer(x))) => view(layer'(x)) for permutes and reshapes, s * relu(layer(x)) =>
// relu(layer'(x)). Why not, where it declines; on success `*layer` and `*folded` are that layer and its weights.
std::string MatchAfter(const Node& node, ChannelMap map, Node** layer, Folded* folded) {
  const Node* user = &node;
  Node* producer = map.input;
  const bool positive = std::all_of(map.affine.scale.begin(), map.affine.scale.end(), [](double s) { return s > 0; }) &&
                        std::all_of(map.affine.shift.begin(), map.affine.shift.end(), [](double s) { return s == 0; });
  while (MovesChannels(*producer) || (positive && IsHomogeneous(*producer))) {
    if (MovesChannels(*producer)) {
      const std::optional<int> axis = AxisOfOperand(*producer, map.axis);
      if (!axis) return absl::StrCat("%", producer->name(), " takes its channels apart");
      map.axis = *axis;
    }
    user = producer;
    producer = producer->operand(0);
  }
  const std::string name = absl::StrCat("%", producer->name());
  if (!IsLayer(*producer)) return absl::StrCat(name, " is no convolution or linear");
  Layer parts;
  std::string why = match::SharedBesides(*producer, *user);
  if (why.empty()) why = WhyNotFoldable(*producer, map.axis, Weights::kCodes, &parts);
  if (why.empty()) why = WhyNotLinear(*producer);
  if (!why.empty()) return why;
  const Affine affine = map.Over(producer->tensor_type().shape[ChannelAxis(*producer)]);
  if (const int64_t channel = ChannelThatNegates(parts, affine); channel >= 0) {
    return absl::StrCat("the weights of ", name, " have the code -128 in channel ", channel,
                        ", whose factor is negative");
  }
  *folded = FoldAfter(parts, affine);
  if (!IsValid(*folded)) return "the folded weights are not finite";
  *layer = producer;
  return "";
}

// layer(map(x)) => layer'(x).
std::string MatchBefore(const Node& node, const ChannelMap& map, const Node& layer, Folded* folded) {
  Layer parts;
  const Tensor* weight = layer.graph().ParameterOfOrNull(layer, "weight");
  const bool one_input = weight != nullptr && weight->rank() > 1 && weight->dim(1) == 1;
  const std::string why = WhyNotFoldable(layer, map.axis, one_input ? Weights::kCodes : Weights::kFloats, &parts);
  if (!why.empty()) return why;
  if (layer.operand(0) != &node || parts.transposed) return absl::StrCat("%", layer.name(), " takes no scaled input");
  const Affine affine = map.Over(node.tensor_type().shape[ChannelAxis(layer)]);
  const bool shifted = std::any_of(affine.shift.begin(), affine.shift.end(), [](double s) { return s != 0; });
  if (shifted && IsPadded(layer)) {
    return absl::StrCat("%", layer.name(), " pads with zeros behind it, and its shift is not 0");
  }
  if (parts.weight->type().quant &&
      (shifted || std::any_of(affine.scale.begin(), affine.scale.end(), [](double s) { return !(s > 0); }))) {
    return absl::StrCat("the weights of %", layer.name(), " are codes, which take positive factors alone");
  }
  *folded = FoldBefore(parts, affine);
  if (!IsValid(*folded)) return "the folded weights are not finite";
  return "";
}

enum class Outcome { kFolded, kDeclined, kDeferred };

// Deferred: what follows can be folded too, and may vanish into a layer behind it; `again` says that it had its turn.
// `alone`: a batch norm without a layer becomes one.
absl::StatusOr<Outcome> Fold(const ConvBnOptions& options, bool alone, ir::Graph& graph, Node* node, bool again,
                             Missed& missed, Remarks& remarks) {
  ChannelMap map;
  map.input = InputOrNull(*node);
  Node* user = !options.only_after_conv() && node->has_one_use() ? node->only_user() : nullptr;
  // A quotient in front of a layer stays: mostly it is of pixels, which a table makes codes of.
  const bool in_front = user != nullptr && IsLayer(*user) && !node->IsOp("div");
  // A product or sum that is beside no layer is none that could be folded.
  const bool near = node->IsOp("batch_norm") || IsLayer(*map.input) || in_front;
  const auto declined = [&](absl::string_view why) {
    if (near) missed.emplace_back(node, absl::StrCat("not folded: ", why));
    return Outcome::kDeclined;
  };
  std::string why;
  if (node->IsOp("batch_norm")) {
    BatchNormStatistics statistics;
    why = WhyNotConstant(*node, &statistics);
    if (why.empty()) map.affine = AffineOf(statistics);
  } else {
    why = WhyNotByChannel(*node, *map.input, &map);
  }
  if (!why.empty()) return declined(why);
  Node* layer = nullptr;
  Folded folded;
  why = MatchAfter(*node, map, &layer, &folded);
  if (layer == nullptr && user != nullptr && InputOrNull(*user) != nullptr && !again) return Outcome::kDeferred;
  if (layer == nullptr && in_front) {
    const std::string why_before = MatchBefore(*node, map, *user, &folded);
    if (why_before.empty()) {
      layer = user;
    } else {
      absl::StrAppend(&why, "; ", why_before);
    }
  }
  if (layer == nullptr && alone && node->IsOp("batch_norm")) {
    ASSIGN_OR_RETURN(const std::string why_not_alone, MakeDepthwise(graph, node, map.affine));
    if (!why_not_alone.empty()) return declined(absl::StrCat(why, "; ", why_not_alone));
    remarks.Applied(*node, absl::StrCat("became a depthwise convolution; not folded: ", why));
    return Outcome::kFolded;
  }
  if (layer == nullptr) return declined(why);
  remarks.Applied(*node, absl::StrCat("folded into %", layer->name(), " (module @", layer->module()->path, ")"));
  RETURN_IF_ERROR(Apply(graph, layer, node, map.input, std::move(folded)));
  return Outcome::kFolded;
}

// Folds what can be folded, each node after those in front of it.
absl::StatusOr<bool> FoldEach(const ConvBnOptions& options, bool alone, ir::Graph& graph, Missed& missed,
                              Remarks& remarks) {
  bool changed = false;
  HashSet<const Node*> deferred;  // They wait for what can be folded behind them.
  for (Node* first : graph.Snapshot()) {
    if (!first->is_call() || InputOrNull(*first) == nullptr) continue;
    for (Node* node = first; node != nullptr;) {
      Node* before = InputOrNull(*node);
      ASSIGN_OR_RETURN(const Outcome outcome,
                       Fold(options, alone, graph, node, deferred.erase(node) > 0, missed, remarks));
      changed |= outcome == Outcome::kFolded;
      if (outcome == Outcome::kDeferred) deferred.insert(node);
      node = outcome != Outcome::kDeferred && deferred.contains(before) ? before : nullptr;
    }
  }
  return changed;
}

}  // namespace

// Until nothing folds: a batch norm that declines since another one has its module can be alone with it later, and one
// behind a sum folds where that has become one layer. What still stands alone then is a layer, and a term of sums.
absl::StatusOr<bool> ConvBn::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  for (bool changed = false;; changed = true) {
    Missed missed, unmerged;
    ASSIGN_OR_RETURN(bool folded, FoldEach(options_, /*alone=*/false, graph, missed, remarks));
    if (!options_.keep_branches()) {
      ASSIGN_OR_RETURN(const bool merged, MergeSums(graph, unmerged, remarks));
      folded |= merged;
    }
    if (!folded && !options_.keep_batch_norms() && !options_.only_after_conv()) {
      missed.clear();
      ASSIGN_OR_RETURN(folded, FoldEach(options_, /*alone=*/true, graph, missed, remarks));
    }
    if (folded) continue;
    missed.insert(missed.end(), unmerged.begin(), unmerged.end());
    for (auto& [node, why] : missed) remarks.Missed(*node, std::move(why));
    return changed;
  }
}

void Register(passes::PassRegistry& registry) {
  registry.Register<ConvBnOptions>(
      [](const ConvBnOptions& options, const passes::PassEnvironment&) { return std::make_unique<ConvBn>(options); });
}

}  // namespace fuselage::conv_bn

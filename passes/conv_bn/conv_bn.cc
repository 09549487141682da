#include "passes/conv_bn/conv_bn.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/match/sharing.h"
#include "passes/conv_bn/fold.h"

namespace fuselage::conv_bn {
namespace {

using ir::Node;
using passes::Remarks;

bool IsTransposed(const Node& layer) { return absl::StartsWith(layer.op()->name, "conv_transpose"); }

bool IsLayer(const Node& node) {
  if (node.op() == nullptr) return false;
  const std::string& op = node.op()->name;
  return op == "linear" || op == "conv1d" || op == "conv2d" || op == "conv3d" || IsTransposed(node);
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

// Why `layer`'s weights cannot change; empty where they can.
std::string WhyNotFoldable(const Node& layer, Layer* parts) {
  const ir::Graph& graph = layer.graph();
  const std::string name = absl::StrCat("%", layer.name());
  if (layer.module() == nullptr) return absl::StrCat(name, " is no call_module (run normalize first)");
  const std::string shared = match::SharedModule(layer);
  if (!shared.empty()) return shared;
  parts->weight = graph.ParameterOfOrNull(layer, "weight");
  parts->bias = graph.ParameterOfOrNull(layer, "bias");
  for (const Tensor* t : {parts->weight, parts->bias}) {
    if (t == nullptr || (t->dtype() == DType::kF32 && !t->type().quant)) continue;
    const absl::string_view kind = t->type().quant ? "quantized" : DTypeName(t->dtype());
    return absl::StrCat("the parameters of ", name, " are ", kind);
  }
  if (layer.IsOp("linear")) {
    if (layer.tensor_type().rank() != 2) return absl::StrCat(name, " is of rank ", layer.tensor_type().rank());
  } else {
    parts->groups = layer.attribute("groups").as_int();
    parts->transposed = IsTransposed(layer);
  }
  return "";
}

// Gives the layer's module its new weights, and takes the batch norm out of the graph. Nothing here can fail but for
// the module's own check, which keeps types: the shapes are those of before.
absl::Status Apply(ir::Graph& graph, Node* layer, Node* bn, Folded folded) {
  ir::Module* module = layer->module();
  std::map<std::string, std::string> parameters = module->parameters;
  parameters["weight"] = graph.AddParameter(absl::StrCat(module->path, ".folded_weight"),
                                            std::make_shared<const Tensor>(std::move(folded.weight)));
  parameters["bias"] = graph.AddParameter(absl::StrCat(module->path, ".folded_bias"),
                                          std::make_shared<const Tensor>(std::move(folded.bias)));
  RETURN_IF_ERROR(graph.UpdateModule(module, module->op->name, module->attributes, std::move(parameters)));
  layer->AddSources(layer->SourcesOrSelf());
  layer->AddSources(bn->SourcesOrSelf());
  bn->ReplaceAllUsesWith(bn->operand(0));
  graph.Erase(bn);
  return absl::OkStatus();
}

bool IsPadded(const Node& conv) {
  if (conv.IsOp("linear")) return false;
  const std::vector<int64_t>& padding = conv.attribute("padding").as_ints();
  return std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p != 0; });
}

// bn(layer(x)) => layer'(x). Why not, where it declines; on success `*folded` holds the weights.
std::string MatchAfter(const Node& bn, const Affine& affine, Folded* folded) {
  const Node& layer = *bn.operand(0);
  Layer parts;
  std::string why = match::SharedBesides(layer, bn);
  if (why.empty()) why = WhyNotFoldable(layer, &parts);
  if (!why.empty()) return why;
  const ir::OpSchema& op = *layer.op();
  if (op.FindAttributeOrNull("activation") != nullptr && layer.attribute("activation").as_string() != "none") {
    return absl::StrCat("%", layer.name(), " has an activation");
  }
  if (layer.num_operands() > 1) return absl::StrCat("%", layer.name(), " has a residual");
  *folded = FoldAfter(parts, affine);
  if (!AllFinite(folded->weight) || !AllFinite(folded->bias)) return "the folded weights are not finite";
  return "";
}

// layer(bn(x)) => layer'(x).
std::string MatchBefore(const Node& bn, const Affine& affine, const Node& layer, Folded* folded) {
  Layer parts;
  const std::string why = WhyNotFoldable(layer, &parts);
  if (!why.empty()) return why;
  if (layer.operand(0) != &bn || parts.transposed) return absl::StrCat("%", layer.name(), " takes no scaled input");
  const bool shifted = std::any_of(affine.shift.begin(), affine.shift.end(), [](double s) { return s != 0; });
  if (shifted && IsPadded(layer)) {
    return absl::StrCat("%", layer.name(), " pads with zeros behind the batch norm, whose shift is not 0");
  }
  *folded = FoldBefore(parts, affine);
  if (!AllFinite(folded->weight) || !AllFinite(folded->bias)) return "the folded weights are not finite";
  return "";
}

enum class Outcome { kFolded, kDeclined, kDeferred };

// Deferred: what follows is a batch norm too, which may vanish into a layer behind it; `again` says that it had its
// turn.
absl::StatusOr<Outcome> Fold(const ConvBnOptions& options, ir::Graph& graph, Node* bn, bool again, Remarks& remarks) {
  const auto declined = [&](absl::string_view why) {
    remarks.Missed(*bn, absl::StrCat("not folded: ", why));
    return Outcome::kDeclined;
  };
  BatchNormStatistics statistics;
  const std::string why_not_constant = WhyNotConstant(*bn, &statistics);
  if (!why_not_constant.empty()) return declined(why_not_constant);
  const Affine affine = AffineOf(statistics);
  std::string why;
  Node* layer = nullptr;
  Folded folded;
  if (Node* producer = bn->operand(0); IsLayer(*producer)) {
    why = MatchAfter(*bn, affine, &folded);
    if (why.empty()) layer = producer;
  } else {
    why = absl::StrCat("%", producer->name(), " is no convolution or linear");
  }
  if (layer == nullptr && !options.only_after_conv() && bn->has_one_use()) {
    Node* user = bn->only_user();
    if (user->IsOp("batch_norm") && !again) return Outcome::kDeferred;
    if (IsLayer(*user)) {
      const std::string why_before = MatchBefore(*bn, affine, *user, &folded);
      if (why_before.empty()) {
        layer = user;
      } else {
        absl::StrAppend(&why, "; ", why_before);
      }
    }
  }
  if (layer == nullptr) return declined(why);
  remarks.Applied(*bn, absl::StrCat("folded into %", layer->name(), " (module @", layer->module()->path, ")"));
  RETURN_IF_ERROR(Apply(graph, layer, bn, std::move(folded)));
  return Outcome::kFolded;
}

}  // namespace

absl::StatusOr<bool> ConvBn::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  bool changed = false;
  HashSet<const Node*> deferred;  // They wait for the batch norm behind them.
  for (Node* node : graph.Snapshot()) {
    if (!node->IsOp("batch_norm")) continue;
    for (Node* bn = node; bn != nullptr;) {
      Node* before = bn->operand(0);
      ASSIGN_OR_RETURN(const Outcome outcome, Fold(options_, graph, bn, deferred.erase(bn) > 0, remarks));
      changed |= outcome == Outcome::kFolded;
      if (outcome == Outcome::kDeferred) deferred.insert(bn);
      bn = outcome != Outcome::kDeferred && deferred.contains(before) ? before : nullptr;
    }
  }
  return changed;
}

void Register(passes::PassRegistry& registry) {
  registry.Register<ConvBnOptions>(
      [](const ConvBnOptions& options, const passes::PassEnvironment&) { return std::make_unique<ConvBn>(options); });
}

}  // namespace fuselage::conv_bn

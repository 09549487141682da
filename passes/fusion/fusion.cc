#include "passes/fusion/fusion.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/activation.h"
#include "ir/base/hash_map.h"
#include "ir/match/batch.h"
#include "ir/match/channel_affine.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"
#include "passes/core/roofline.h"
#include "passes/fusion/elementwise.h"
#include "passes/fusion/horizontal.h"
#include "passes/fusion/split_linear.h"
#include "passes/fusion/subpixel.h"

namespace fuselage::fusion {
namespace {

using ir::Node;
using ir::NodeKind;
using passes::Remarks;

bool HasActivation(const Node& node) { return node.attribute("activation").as_string() != "none"; }

bool IsFusable(const Node& node) { return node.op() != nullptr && node.op()->fusable_activation; }

// Where a quantize and a dequantize stand between `value` and what computes it: that node. Else null.
const Node* BehindQuantizeOrNull(const Node& value) {
  if (!value.IsOp("dequantize") || !value.operand(0)->IsOp("quantize")) return nullptr;
  const Node* producer = value.operand(0)->operand(0);
  return IsFusable(*producer) ? producer : nullptr;
}

FusionOptions::Rule RuleOf(const Node& producer) {
  if (match::IsConvolution(producer)) return FusionOptions::CONV_RELU;
  if (producer.IsOp("linear")) return FusionOptions::LINEAR_RELU;
  if (producer.IsOp("add")) return FusionOptions::ADD_RELU;
  if (producer.IsOp("gemm")) return FusionOptions::MATMUL_RELU;
  return FusionOptions::NONE;
}

// Multiplications for one element of the result.
int64_t Reduction(const Node& conv) {
  const Tensor* weight = conv.graph().ParameterOfOrNull(conv, "weight");
  return weight->num_elements() / std::max<int64_t>(weight->dim(0), 1);
}

// Why `add` cannot be the bias of `matmul`, its operand; empty where it can.
std::string WhyNoGemm(const Node& matmul, const Node& add, const Node& bias) {
  const std::string shared = match::SharedBesides(matmul, add);
  if (!shared.empty()) return shared;
  if (add.attribute("alpha").as_float() != 1) return absl::StrCat("alpha=", add.attribute("alpha").as_float());
  const Shape& result = matmul.tensor_type().shape;
  if (result.size() != 2 || matmul.operand(0)->tensor_type().rank() != 2 ||
      matmul.operand(1)->tensor_type().rank() != 2) {
    return absl::StrCat("%", matmul.name(), " is no product of two matrices");
  }
  const Shape& shape = bias.tensor_type().shape;
  if (add.type() != matmul.type() || shape.empty() || shape.back() != result[1] ||
      bias.tensor_type().num_elements() != result[1]) {
    return absl::StrCat("%", bias.name(), " is ", ToString(shape), ", wanted one value per column of ",
                        ToString(result));
  }
  return "";
}

// Why `add` cannot become the residual of `conv`, one of its operands; empty where it can.
std::string WhyNoResidual(const Node& conv, const Node& add, const Node& residual,
                          const match::BatchFollowers& followers) {
  const std::string name = absl::StrCat("%", conv.name());
  if (conv.kind() != NodeKind::kCallModule) return absl::StrCat(name, " is no call_module (run normalize first)");
  const std::string shared = match::SharedBesides(conv, add);
  if (!shared.empty()) return shared;
  if (HasActivation(conv)) return absl::StrCat(name, " has an activation");
  if (conv.num_operands() > 1) return absl::StrCat(name, " has a residual");
  const double alpha = add.attribute("alpha").as_float();
  if (alpha != 1) return absl::StrCat("alpha=", alpha);
  if (residual.type() != conv.type()) {
    return absl::StrCat("%", residual.name(), " is ", ToString(residual.type()), ", wanted ", ToString(conv.type()));
  }
  if (!followers.Contain(residual)) return absl::StrCat("%", residual.name(), " is the same for any batch");
  return "";
}

bool IsElementwise(const Node& node) { return node.op() != nullptr && node.op()->elementwise && match::IsF32(node); }

// Whether what only scales and shifts the value's channels follows, and nothing that is computed element by element.
bool IsScaledAtLast(const Node& value) {
  const Node* last = &value;
  while (last->has_one_use() && match::ChannelAffineOf(*last->only_user())) last = last->only_user();
  return last != &value && !(last->has_one_use() && IsElementwise(*last->only_user()));
}

// Whether what alone reads a function goes on with it: with numbers, element by element. On codes all of it is one
// table, in place of the function too; but what only scales a conv2d's channels at last is part of its rounding.
bool GoesOn(const Node& producer, const Node& function) {
  if (ActivationOf(function).is_clamp() || !function.has_one_use()) return false;
  if (producer.IsOp("conv2d") && IsScaledAtLast(function)) return false;
  const Node& user = *function.only_user();
  if (!IsElementwise(user)) return false;
  const std::vector<Node*> operands = user.operands();
  return operands.size() > 1 && std::all_of(operands.begin(), operands.end(), [&](const Node* x) {
           return x == &function ||
                  (x != nullptr && x->kind() == NodeKind::kGetAttr && x->tensor_type().num_elements() == 1);
         });
}

// Chains of elementwise ops become one op of their own, where an add has a relu at most.
bool TakesIn(const Node& producer, const Node& activation) {
  return IsFusable(producer) && (activation.IsOp("relu") || !producer.op()->elementwise) &&
         !GoesOn(producer, activation);
}

// What computes the elements that `user` reads: views in between, which have no other reader, only move or select them.
struct Source {
  Node* producer;
  const Node* reader;  // Of its result: `user` or the first view.
};
Source SourceOf(const Node& user) {
  Source source = {user.operand(0), &user};
  while (source.producer->op() != nullptr && source.producer->op()->view != ir::View::kNone &&
         source.producer->has_one_use()) {
    source = {source.producer->operand(0), source.producer};
  }
  return source;
}

// Why `producer` cannot take `activation` in; empty where it can. `reader` is the activation or the first view of the
// result.
std::string WhyNoActivation(const Node& producer, const Node& activation, const Node& reader,
                            const HashSet<int>& disabled) {
  if (producer.kind() == NodeKind::kCallMethod) return absl::StrCat("%", producer.name(), " is a call_method");
  if (disabled.contains(RuleOf(producer))) return "the options disable it";
  if (HasActivation(producer) && !ActivationOf(activation).is_clamp()) {
    return absl::StrCat("%", producer.name(), " has an activation");
  }
  return match::SharedBesides(producer, reader);
}

class Walk {
 public:
  Walk(const FusionOptions& options, ir::Graph& graph, Remarks& remarks) : graph_(graph), remarks_(remarks) {
    for (int rule : options.disable()) disabled_.insert(rule);
  }

  // Again, it looks for what has become possible.
  absl::StatusOr<bool> Run() {
    bool changed = false;
    for (Node* node : graph_.Snapshot()) {
      order_[node] = ++position_;
      followers_.Visit(*node);
      bool fused = false;
      if (!ActivationOf(*node).is_none()) {
        ASSIGN_OR_RETURN(fused, FuseActivation(node));
      } else if (node->IsOp("add")) {
        ASSIGN_OR_RETURN(fused, FuseBias(node));
        if (!fused) {
          ASSIGN_OR_RETURN(fused, FuseAdd(node));
        }
      }
      changed |= fused;
    }
    return changed;
  }

 private:
  absl::StatusOr<bool> FuseActivation(Node* relu) {
    auto [producer, reader] = SourceOf(*relu);
    if (const Node* behind = BehindQuantizeOrNull(*producer); behind != nullptr) {
      return Missed(*relu, absl::StrCat("a quantize stands between %", behind->name(), " and it"));
    }
    if (!TakesIn(*producer, *relu)) return false;
    const std::string why = WhyNoActivation(*producer, *relu, *reader, disabled_);
    if (!why.empty()) return Missed(*relu, why);
    remarks_.Applied(*relu, absl::StrCat("fused into %", producer->name(), " (", producer->op()->name, ")"));
    AttributeMap attributes = producer->attributes();
    const Activation own = *ParseActivation(producer->attribute("activation").as_string());
    const Activation next = ActivationOf(*relu);
    attributes.insert_or_assign("activation", Attribute(ToString(next.is_clamp() ? own.Then(next) : next)));
    if (ir::Module* module = producer->module(); module != nullptr) {
      RETURN_IF_ERROR(graph_.UpdateModule(module, module->op->name, std::move(attributes), module->parameters));
    } else {
      ASSIGN_OR_RETURN(Node * fused, graph_.AddFunction(producer->name(), producer->target(), producer->operands(),
                                                        std::move(attributes), producer));
      Replace(producer, fused);
      producer = fused;
    }
    producer->AddSources(producer->SourcesOrSelf());
    producer->AddSources(relu->SourcesOrSelf());
    relu->ReplaceAllUsesWith(relu->operand(0));
    Erase(relu);
    return true;
  }

  // add(matmul(a, b), c) => gemm(a, b, c)
  absl::StatusOr<bool> FuseBias(Node* add) {
    const int side = add->operand(0)->IsOp("matmul") ? 0 : 1;
    Node* matmul = add->operand(side);
    Node* bias = add->operand(1 - side);
    if (!matmul->IsOp("matmul")) return false;
    std::string why = WhyNoGemm(*matmul, *add, *bias);
    if (disabled_.contains(FusionOptions::MATMUL_ADD)) why = "the options disable it";
    if (!why.empty()) return Missed(*add, why);
    remarks_.Applied(*add, absl::StrCat("the bias of %", matmul->name(), " (gemm)"));
    ASSIGN_OR_RETURN(Node * gemm,
                     graph_.AddFunction(add->name(), "gemm", {matmul->operand(0), matmul->operand(1), bias},
                                        {{"activation", add->attribute("activation")}}, add));
    gemm->AddSources(matmul->SourcesOrSelf());
    gemm->AddSources(add->SourcesOrSelf());
    Replace(add, gemm);
    Erase(matmul);
    return true;
  }

  absl::StatusOr<bool> FuseAdd(Node* add) {
    Node* host = nullptr;
    std::string why;
    for (int i = 0; i < 2; ++i) {
      Node* conv = add->operand(i);
      const Node* residual = add->operand(1 - i);
      if (const Node* behind = BehindQuantizeOrNull(*conv); behind != nullptr && match::IsConvolution(*behind)) {
        why = absl::StrCat("a quantize stands between %", behind->name(), " and it");
      }
      if (!match::IsConvolution(*conv)) continue;
      const std::string why_not = WhyNoResidual(*conv, *add, *residual, followers_);
      if (!why_not.empty()) {
        why = why_not;
      } else if (host == nullptr || IsBetterHost(*conv, *host)) {
        host = conv;
      }
    }
    if (host != nullptr && disabled_.contains(FusionOptions::CONV_ADD)) {
      host = nullptr;
      why = "the options disable it";
    }
    if (host == nullptr) return !why.empty() && Missed(*add, why);

    Node* residual = add->operand(add->operand(0) == host ? 1 : 0);
    ir::Module* module = host->module();
    if (HasActivation(*add)) {
      AttributeMap attributes = module->attributes;
      attributes.insert_or_assign("activation", add->attribute("activation"));
      RETURN_IF_ERROR(graph_.UpdateModule(module, module->op->name, std::move(attributes), module->parameters));
    }
    remarks_.Applied(*add, absl::StrCat("fused into %", host->name(), " (", host->op()->name, ") with the residual %",
                                        residual->name()));
    ASSIGN_OR_RETURN(Node * fused, graph_.AddModuleCall(host->name(), module->path, {host->operand(0), residual}, add));
    fused->AddSources(add->SourcesOrSelf());  // Behind those of the conv, which Replace puts in front.
    add->ReplaceAllUsesWith(fused);
    Erase(add);
    Replace(host, fused);
    order_[fused] = position_;  // It stands where the add stood.
    return true;
  }

  // False: nothing is fused. Says why once.
  bool Missed(const Node& node, absl::string_view why) {
    if (missed_.insert(node.name()).second) remarks_.Missed(node, absl::StrCat("not fused: ", why));
    return false;
  }

  bool IsBetterHost(const Node& a, const Node& b) const {
    const int64_t reduction_a = Reduction(a), reduction_b = Reduction(b);
    if (reduction_a != reduction_b) return reduction_a > reduction_b;
    return order_.at(&a) > order_.at(&b);
  }

  void Erase(Node* node) {
    order_.erase(node);
    graph_.Erase(node);
  }
  void Replace(Node* node, Node* replacement) {
    const int64_t position = order_.at(node);  // Not a reference into a table that grows.
    order_.insert_or_assign(replacement, position);
    followers_.Visit(*replacement);
    order_.erase(node);
    graph_.Replace(node, replacement);
  }

  HashSet<int> disabled_;
  ir::Graph& graph_;
  Remarks& remarks_;
  int64_t position_ = 0;                 // Where the node that is being visited stands.
  HashMap<const Node*, int64_t> order_;  // Positions of the nodes walked so far.
  match::BatchFollowers followers_;
  HashSet<std::string> missed_;
};

}  // namespace

Activation ActivationOf(const Node& node) {
  if (!node.is_call() || node.op() == nullptr || !node.type().is_tensor()) return {};
  if (node.IsOp("relu")) return Activation::Relu();
  const DType dtype = node.tensor_type().dtype;
  if (!node.IsOp("clamp")) return dtype == DType::kF32 ? FunctionOf(node.op()->name, node.attributes()) : Activation();
  if (dtype == DType::kF64) return {};
  const Activation clamp = {static_cast<float>(node.attribute("min").as_float()),
                            static_cast<float>(node.attribute("max").as_float())};
  return clamp.min <= clamp.max ? clamp : Activation();
}

Fusion::Fusion(FusionOptions options, const passes::MachinePeaks* peaks)
    : options_(std::move(options)), peaks_(peaks != nullptr ? *peaks : passes::TypicalPeaks()) {}

absl::StatusOr<bool> Fusion::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  const auto enabled = [this](FusionOptions::Rule rule) {
    return std::find(options_.disable().begin(), options_.disable().end(), rule) == options_.disable().end();
  };
  bool changed = false;
  if (enabled(FusionOptions::SUBPIXEL)) {
    ASSIGN_OR_RETURN(changed, RewriteConvTransposes(graph, remarks));
  }
  Walk walk(options_, graph, remarks);
  ASSIGN_OR_RETURN(const bool fused, walk.Run());
  changed |= fused;
  if (enabled(FusionOptions::SPLIT_LINEAR)) {
    ASSIGN_OR_RETURN(const bool split, SplitLinears(peaks_, graph, remarks));
    if (split) RETURN_IF_ERROR(walk.Run().status());  // A part may have an activation of its own.
    changed |= split;
  }
  if (enabled(FusionOptions::ELEMENTWISE)) {
    ASSIGN_OR_RETURN(const bool fused, FuseElementwise(graph, remarks));
    changed |= fused;
  }
  if (enabled(FusionOptions::HORIZONTAL)) {
    ASSIGN_OR_RETURN(const bool joined, FuseHorizontally(peaks_, graph, remarks));
    changed |= joined;
  }
  return changed;
}

absl::Status Fusion::Ensures(const ir::Graph& graph) const {
  const HashSet<int> disabled(options_.disable().begin(), options_.disable().end());
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (ActivationOf(*node).is_none()) continue;
    const auto [producer, reader] = SourceOf(*node);
    if (!TakesIn(*producer, *node) || !WhyNoActivation(*producer, *node, *reader, disabled).empty()) continue;
    return absl::InternalError(absl::StrCat("%", node->name(), " could be part of %", producer->name()));
  }
  return absl::OkStatus();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<FusionOptions>([](const FusionOptions& options, const passes::PassEnvironment& environment) {
    return std::make_unique<Fusion>(options, environment.peaks);
  });
}

}  // namespace fuselage::fusion

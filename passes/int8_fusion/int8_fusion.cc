#include "passes/int8_fusion/int8_fusion.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/match/batch.h"
#include "ir/match/sharing.h"
#include "passes/int8_fusion/lookups.h"
#include "passes/int8_fusion/norms.h"
#include "passes/module_call/module_call.h"

namespace fuselage::int8_fusion {
namespace {

using ir::Node;
using passes::Remarks;

constexpr int64_t kMaxWeightBytes = 32 << 10;

// Nodes that may become one, in their order.
struct Candidate {
  Int8FusionOptions::Rule rule;
  const char* op;
  Node* pool;
  Node* layer;
  std::vector<Node*> nodes;
};

// The same elements in the same order, under another shape.
bool IsReshape(const Node& node) { return node.op() != nullptr && node.op()->view == ir::View::kSameOrder; }

bool IsGlobalAvgPool(const Node& node) {
  if (node.IsOp("int8.global_avg_pool")) return true;
  if (!node.IsOp("int8.avg_pool2d")) return false;
  const Shape& shape = node.operand(0)->tensor_type().shape;
  const std::vector<int64_t>& padding = node.attribute("padding").as_ints();
  return node.attribute("kernel_size").as_ints() == std::vector<int64_t>(shape.begin() + 2, shape.end()) &&
         std::count(padding.begin(), padding.end(), 0) == static_cast<int64_t>(padding.size());
}

// The candidate that ends in `node`; without nodes where there is none.
Candidate CandidateOf(Node* node) {
  if (node->IsOp("int8.max_pool2d") && node->operand(0)->IsOp("int8.conv2d")) {
    Node* conv = node->operand(0);
    return {Int8FusionOptions::CONV2D_MAX_POOL2D, "int8.conv2d_max_pool2d", node, conv, {conv, node}};
  }
  if (node->IsOp("int8.linear")) {
    Candidate candidate = {
        Int8FusionOptions::GLOBAL_AVG_POOL_LINEAR, "int8.global_avg_pool_linear", nullptr, node, {node}};
    Node* value = node->operand(0);
    for (bool shared = false; IsReshape(*value) && !shared; value = value->operand(0)) {
      shared = !value->has_one_use();  // It ends here: many layers may share a long chain.
      candidate.nodes.push_back(value);
    }
    if (IsGlobalAvgPool(*value)) {
      candidate.pool = value;
      candidate.nodes.push_back(value);
      std::reverse(candidate.nodes.begin(), candidate.nodes.end());
      return candidate;
    }
  }
  return {};
}

bool IsDisabled(const Int8FusionOptions& options, Int8FusionOptions::Rule rule) {
  return std::count(options.disable().begin(), options.disable().end(), rule) > 0;
}

// Why it cannot be one node, as far as the graph tells; empty where it can.
std::string WhyNot(const Candidate& candidate, const Int8FusionOptions& options) {
  if (IsDisabled(options, candidate.rule)) return "the options disable it";
  for (size_t i = 0; i + 1 < candidate.nodes.size(); ++i) {
    const Node& value = *candidate.nodes[i];
    if (!value.has_one_use()) return match::SharedBesides(value, *candidate.nodes[i + 1]);
  }
  const Node& layer = *candidate.layer;
  if (layer.module() == nullptr) return absl::StrCat("%", layer.name(), " is no call_module");
  if (const std::string shared = match::SharedModule(layer); !shared.empty()) return shared;
  if (candidate.rule == Int8FusionOptions::GLOBAL_AVG_POOL_LINEAR) {
    const Shape &rows = layer.operand(0)->tensor_type().shape, &pooled = candidate.pool->tensor_type().shape;
    if (rows == Shape{pooled[0], pooled[1]}) return "";
    return absl::StrCat("%", layer.name(), " reads the means as ", ToString(rows), ", wanted ",
                        ToString(Shape{pooled[0], pooled[1]}));
  }
  if (layer.num_operands() > 1) return absl::StrCat("%", layer.name(), " has a residual");
  if (layer.module()->parameters.count("post_scale") > 0) {
    return absl::StrCat("%", layer.name(), " scales what its activation makes");
  }
  const int64_t most = options.max_weight_bytes() > 0 ? options.max_weight_bytes() : kMaxWeightBytes;
  const int64_t bytes = layer.graph().ParameterOfOrNull(layer, "weight")->byte_size();
  if (bytes <= most) return "";
  return absl::StrCat("each band of rows would read the ", bytes, " bytes of weights of %", layer.name(),
                      ", wanted at most ", most);
}

// The attributes of both, as the fused op names them.
AttributeMap FusedAttributes(const Candidate& candidate, const ir::OpSchema& op) {
  AttributeMap attributes;
  for (const ir::AttributeSpec& spec : op.attributes) {
    const absl::string_view name = spec.name;
    attributes.emplace(spec.name, absl::StartsWith(name, "pool_") ? candidate.pool->attribute(name.substr(5))
                                                                  : candidate.layer->attribute(name));
  }
  return attributes;
}

module_call::Call FusedCall(const Candidate& candidate, const ir::OpSchema& op) {
  return {candidate.op,
          FusedAttributes(candidate, op),
          candidate.layer->module()->parameters,
          {candidate.nodes.front()->operand(0)}};
}

// Asks op and kernel. Why they refuse; else what runs it, for a remark.
absl::StatusOr<std::string> VariantOf(const Candidate& candidate, const kernels::KernelRegistry& kernels) {
  const ir::Graph& graph = candidate.layer->graph();
  const ir::OpSchema* schema = graph.ops().FindOrNull(candidate.op);
  if (schema == nullptr) return absl::UnimplementedError(absl::StrCat("no operator ", candidate.op));
  ASSIGN_OR_RETURN(const module_call::Accepted accepted,
                   module_call::Ask(FusedCall(candidate, *schema), graph, kernels));
  const ir::Type& wanted = candidate.nodes.back()->type();
  if (accepted.type != wanted) {
    return absl::InternalError(
        absl::StrCat(candidate.op, " gives ", ToString(accepted.type), ", wanted ", ToString(wanted)));
  }
  return accepted.variant;
}

std::string Names(const Candidate& candidate) {
  return absl::StrCat("%", candidate.nodes.front()->name(), " and %", candidate.nodes.back()->name());
}

}  // namespace

Int8Fusion::Int8Fusion(Int8FusionOptions options, const kernels::KernelRegistry* kernels)
    : options_(std::move(options)), kernels_(kernels) {}

absl::StatusOr<bool> Int8Fusion::RunImpl(ir::Graph& graph, Remarks& remarks) const {
  if (kernels_ == nullptr) return absl::InvalidArgumentError("needs kernels, and the caller gives none");
  bool changed = false;
  match::BatchFollowers followers;
  const auto stays = [&](const Node& node, Int8FusionOptions::Rule rule, const std::string& why_not) {
    const std::string why = IsDisabled(options_, rule) ? "the options disable it" : why_not;
    if (!why.empty()) remarks.Missed(node, absl::StrCat("not fused: ", why));
    return !why.empty();
  };
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    followers.Visit(*node);
    const FusableNorm norm = FusableNormAt(node, followers, *kernels_);
    if (norm.quantize != nullptr) {
      if (stays(*node, Int8FusionOptions::NORM_QUANTIZE, norm.why_not)) continue;
      ASSIGN_OR_RETURN(node, FuseNorm(norm, graph, remarks));
      followers.Visit(*node);
      changed = true;
      continue;
    }
    if (const FusableLookup lookup = LookupOfBytesAt(node, *kernels_); !lookup.chain.empty()) {
      if (stays(*node, Int8FusionOptions::LOOKUP, lookup.why_not)) continue;
      ASSIGN_OR_RETURN(node, FuseLookup(lookup, graph, remarks));
      followers.Visit(*node);
      changed = true;
      continue;
    }
    const Candidate candidate = CandidateOf(node);
    if (candidate.nodes.empty()) continue;
    std::string why = WhyNot(candidate, options_);
    absl::StatusOr<std::string> variant = std::string();
    if (why.empty()) {
      variant = VariantOf(candidate, *kernels_);
      if (!variant.ok()) why = std::string(variant.status().message());
    }
    if (!why.empty()) {
      remarks.Missed(*node, absl::StrCat("not fused: ", why));
      continue;
    }
    const std::string names = Names(candidate);
    ASSIGN_OR_RETURN(node, module_call::Replace(candidate.nodes, candidate.layer->module()->path,
                                                FusedCall(candidate, *graph.ops().FindOrNull(candidate.op)), graph));
    followers.Visit(*node);
    remarks.Applied(*node, absl::StrCat(names, " as ", candidate.op, ", kernel ", *variant));
    changed = true;
  }
  for (Node* node = graph.last(); node != nullptr; node = node->previous()) {
    const FusableLookup lookup = LookupOfCodesAt(node, *kernels_);
    if (lookup.chain.empty() || stays(*node, Int8FusionOptions::LOOKUP, lookup.why_not)) continue;
    ASSIGN_OR_RETURN(node, FuseLookup(lookup, graph, remarks));
    changed = true;
  }
  return changed;
}

absl::Status Int8Fusion::Ensures(const ir::Graph& graph) const {
  match::BatchFollowers followers;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    followers.Visit(*node);
    const FusableNorm norm = FusableNormAt(node, followers, *kernels_);
    if (norm.quantize != nullptr && norm.why_not.empty() && !IsDisabled(options_, Int8FusionOptions::NORM_QUANTIZE)) {
      return absl::InternalError(absl::StrCat("%", node->name(), " could be one node with what quantizes it"));
    }
    for (const FusableLookup& lookup : {LookupOfBytesAt(node, *kernels_), LookupOfCodesAt(node, *kernels_)}) {
      if (lookup.chain.empty() || !lookup.why_not.empty()) continue;
      if (IsDisabled(options_, Int8FusionOptions::LOOKUP)) continue;
      return absl::InternalError(absl::StrCat("%", node->name(), " could be a table with what it is made of"));
    }
    const Candidate candidate = CandidateOf(node);
    if (candidate.nodes.empty() || !WhyNot(candidate, options_).empty()) continue;
    if (VariantOf(candidate, *kernels_).ok()) {
      return absl::InternalError(absl::StrCat(Names(candidate), " could be one node"));
    }
  }
  return absl::OkStatus();
}

void Register(passes::PassRegistry& registry) {
  registry.Register<Int8FusionOptions>(
      [](const Int8FusionOptions& options, const passes::PassEnvironment& environment) {
        return std::make_unique<Int8Fusion>(options, environment.kernels);
      });
}

}  // namespace fuselage::int8_fusion

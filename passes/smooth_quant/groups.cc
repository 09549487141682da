#include "passes/smooth_quant/groups.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/match/properties.h"
#include "ir/match/sharing.h"

namespace fuselage::smooth_quant {
namespace {

using ir::Node;

int64_t LastSize(const Node& node) { return node.tensor_type().rank() == 0 ? 0 : node.tensor_type().shape.back(); }

// Keeps the last axis as it is.
bool IsView(const Node& node) {
  return node.op() != nullptr && node.op()->view == ir::View::kSameOrder && match::IsF32(node) &&
         LastSize(node) == LastSize(*node.operand(0));
}

// The value that `node` is a view of.
Node* Root(Node* node) {
  while (IsView(*node)) node = node->operand(0);
  return node;
}

// Why the weights of `layer`, a linear or a norm, cannot be scaled; empty where they can.
std::string WhyFixed(const Node& layer) {
  const std::string name = absl::StrCat("%", layer.name());
  if (layer.module() == nullptr) return absl::StrCat(name, " is no call_module (run normalize first)");
  if (!match::IsF32(layer)) return absl::StrCat(name, " is no float");
  const bool is_linear = layer.IsOp("linear");
  const int64_t outputs = is_linear ? layer.graph().ParameterOfOrNull(layer, "weight")->dim(0) : LastSize(layer);
  for (const char* parameter : {"weight", "bias"}) {
    if (layer.op()->OperandIndex(parameter) < 0) continue;
    const Tensor* tensor = layer.graph().ParameterOfOrNull(layer, parameter);
    if (tensor == nullptr) continue;
    const TensorType& type = tensor->type();
    if (type.dtype != DType::kF32 || type.quant) return absl::StrCat("the ", parameter, " of ", name, " is not f32");
    if (type.shape[0] != outputs) return absl::StrCat("the ", parameter, " of ", name, " is no value a channel");
    const absl::Span<const float> values = tensor->values<float>();
    if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) {
      return absl::StrCat("the ", parameter, " of ", name, " is not finite");
    }
  }
  return match::SharedModule(layer);
}

// Why the result of `node` absorbs no factor of its channels; empty where it does.
std::string WhyNotAbsorbed(const Node& node) {
  const std::string name = absl::StrCat("%", node.name());
  if (node.IsOp("layer_norm") || node.IsOp("rms_norm")) {
    const bool last_axis = node.attribute("normalized_shape").as_ints().size() == 1;
    return last_axis ? WhyFixed(node) : absl::StrCat(name, " is no norm over the last axis");
  }
  if (!node.IsOp("linear")) return absl::StrCat(name, " absorbs no factor of a channel");
  const std::string& activation = node.attribute("activation").as_string();
  if (activation != "none" && activation != "relu") return absl::StrCat(name, " has the activation ", activation);
  if (node.num_operands() > 1) return absl::StrCat(name, " adds a residual");
  return WhyFixed(node);
}

// What absorbs a factor of the channels of `value`, or why nothing does.
struct Absorber {
  Node* writer = nullptr;
  std::string why_not;
};

Absorber FindAbsorber(const SmoothQuantOptions& options, Node* value) {
  if (!value->IsOp("mul")) {
    const std::string why_not = WhyNotAbsorbed(*value);
    return {why_not.empty() ? value : nullptr, why_not};
  }
  // The codes that the factors of a product then have would span unlike channels in place of those of the product.
  if (!options.per_token()) {
    return {nullptr, absl::StrCat("%", value->name(), " has factors with codes of their own (see per_token)")};
  }
  for (Node* operand : {value->operand(1), value->operand(0)}) {
    const bool alone = operand->has_one_use() && match::IsF32(*operand) && LastSize(*operand) == LastSize(*value);
    if (alone && WhyNotAbsorbed(*operand).empty()) return {operand, ""};
  }
  return {nullptr, absl::StrCat("no factor of %", value->name(), " absorbs one of a channel")};
}

// Appends the linears that read `value`. Returns why one of its readers cannot be scaled; empty where all can.
std::string FindReaders(Node* value, std::vector<Node*>& readers) {
  for (const ir::Use& use : value->uses()) {
    std::string why;
    if (IsView(*use.user)) {
      why = FindReaders(use.user, readers);
    } else if (use.user->IsOp("linear") && use.index == 0) {
      why = WhyFixed(*use.user);
      readers.push_back(use.user);
    } else if (use.user->kind() == ir::NodeKind::kOutput) {
      why = absl::StrCat("%", value->name(), " is a graph output");
    } else {
      why = absl::StrCat("%", use.user->name(), " reads it too");
    }
    if (!why.empty()) return why;
  }
  return "";
}

}  // namespace

std::vector<Group> FindGroups(const SmoothQuantOptions& options, const ir::Graph& graph, passes::Remarks& remarks) {
  std::vector<Group> groups;
  HashSet<const Node*> seen;
  for (Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->IsOp("linear") || !match::IsF32(*node)) continue;
    Node* const value = Root(node->operand(0));
    if (!value->is_call() || !seen.insert(value).second) continue;
    Absorber absorber = FindAbsorber(options, value);
    Group group{value, absorber.writer, {}};
    if (absorber.why_not.empty()) absorber.why_not = FindReaders(value, group.readers);
    if (absorber.why_not.empty()) {
      groups.push_back(std::move(group));
    } else {
      remarks.Missed(*node, absl::StrCat("the channels of %", value->name(), " stay as they are: ", absorber.why_not));
    }
  }
  return groups;
}

}  // namespace fuselage::smooth_quant

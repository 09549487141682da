#include "passes/lower/moves.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"
#include "ir/match/properties.h"
#include "passes/lower/codes.h"

namespace fuselage::lower {
namespace {

using ir::Node;

// Of floats, one operand.
bool HandsOn(const Node& node) {
  if (!node.is_call() || node.num_operands() == 0 || !match::IsF32(node)) return false;
  const std::vector<Node*> operands = node.operands();
  return (node.op()->keeps_range || node.op()->view != ir::View::kNone) &&
         std::count_if(operands.begin(), operands.end(), [](const Node* x) { return x && match::IsF32(*x); }) == 1;
}

bool IsLayerOfCodes(const Node& node) {
  const Tensor* weight = node.is_call() ? node.graph().ParameterOfOrNull(node, "weight") : nullptr;
  return weight != nullptr && weight->type().quant.has_value();
}

// Those that hand on what such a layer reads, itself or behind others of them.
HashSet<const Node*> ReadAsCodes(const std::vector<Node*>& nodes) {
  HashSet<const Node*> found;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!HandsOn(**node)) continue;
    const std::vector<ir::Use> uses = (*node)->uses();
    if (std::any_of(uses.begin(), uses.end(), [&](const ir::Use& use) {
          return use.index == 0 && (IsLayerOfCodes(*use.user) || found.contains(use.user));
        })) {
      found.insert(*node);
    }
  }
  return found;
}

}  // namespace

absl::StatusOr<bool> MoveCodes(ir::Graph& graph, passes::Remarks& remarks) {
  bool changed = false;
  const std::vector<Node*> nodes = graph.Snapshot();
  const HashSet<const Node*> read_as_codes = ReadAsCodes(nodes);
  for (Node* node : nodes) {
    if (!read_as_codes.contains(node) || !IsDequantize(*node->operand(0))) continue;
    const Node* codes = CodesOrNull(*node->operand(0));
    if (codes == nullptr) continue;
    const TensorType& type = codes->tensor_type();
    const AttributeMap attributes = {{"dtype", type.dtype},
                                     {"scales", std::vector<double>{type.quant->scale()}},
                                     {"zero_points", std::vector<int64_t>{type.quant->zero_point()}}};
    ASSIGN_OR_RETURN(Node * quantize,
                     graph.AddFunction(absl::StrCat(node->name(), "_q"), "quantize", {node}, attributes, node->next()));
    ASSIGN_OR_RETURN(Node * again, graph.AddFunction(absl::StrCat(node->name(), "_dq"), "dequantize", {quantize}, {},
                                                     quantize->next()));
    node->ReplaceAllUsesWith(again);
    quantize->set_operand(0, node);
    remarks.Applied(*node, absl::StrCat("hands on codes of %", codes->name()));
    changed = true;
  }
  return changed;
}

}  // namespace fuselage::lower

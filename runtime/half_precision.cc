#include "runtime/half_precision.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"

namespace fuselage::runtime {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeKind;

bool IsOf(const ir::Type& type, DType dtype) { return type.is_tensor() && type.tensor().dtype == dtype; }

absl::Status CheckNotQuantized(const Node& node) {
  for (const TensorType& type : node.type().elements()) {
    if (!type.quant) continue;
    return absl::UnimplementedError(
        absl::StrCat("%", node.name(), " is ", ToString(type), ", wanted no codes in a network for FP16"));
  }
  return absl::OkStatus();
}

// One type of floats that becomes another.
struct Change {
  DType from, to;
};

AttributeMap Changed(AttributeMap attributes, Change change) {
  for (auto& [name, value] : attributes) {
    if (value.kind() == AttributeKind::kDType && value.as_dtype() == change.from) value = change.to;
  }
  return attributes;
}

absl::StatusOr<Node*> AddCast(Graph& graph, Node* value, DType dtype) {
  return graph.AddFunction(absl::StrCat(value->name(), "_", DTypeName(dtype)), "to", {value}, {{"dtype", dtype}});
}

void WarnOfOverflow(const std::string& name, const Tensor& from, const Tensor& to, std::vector<std::string>& warnings) {
  int64_t count = 0, first = -1;
  for (int64_t i = 0; i < from.num_elements(); ++i) {
    if (std::isfinite(to.At(i)) || !std::isfinite(from.At(i))) continue;
    if (count++ == 0) first = i;
  }
  if (count == 0) return;
  warnings.push_back(absl::StrCat("@", name, ": ", count, " of ", from.num_elements(),
                                  " values are infinite in FP16, element ", first, ", ", from.At(first), ", first"));
}

// The node that stands for `node`.
absl::StatusOr<Node*> AddNode(Graph& copy, const Node& node, std::vector<Node*> operands, Change change) {
  switch (node.kind()) {
    case NodeKind::kPlaceholder: {
      ASSIGN_OR_RETURN(Node * input, copy.AddPlaceholder(node.name(), node.tensor_type()));
      return IsOf(node.type(), change.from) ? AddCast(copy, input, change.to) : input;
    }
    case NodeKind::kGetAttr: return copy.AddGetAttr(node.name(), node.target());
    case NodeKind::kCallFunction:
      return copy.AddFunction(node.name(), node.target(), std::move(operands), Changed(node.attributes(), change));
    case NodeKind::kCallMethod:
      return copy.AddMethod(node.name(), node.target(), std::move(operands), Changed(node.attributes(), change));
    case NodeKind::kCallModule: return copy.AddModuleCall(node.name(), node.target(), std::move(operands));
    case NodeKind::kOutput: break;
  }
  for (int i = 0; i < node.num_operands(); ++i) {
    if (!IsOf(node.operand(i)->type(), change.from)) continue;
    ASSIGN_OR_RETURN(operands[i], AddCast(copy, operands[i], change.from));
  }
  return copy.AddOutput(std::move(operands));
}

absl::StatusOr<std::unique_ptr<Graph>> ChangedCopy(const Graph& graph, Change change,
                                                   std::vector<std::string>* warnings) {
  auto copy = std::make_unique<Graph>(graph.name(), graph.ops());
  for (const auto& [name, parameter] : graph.parameters()) {
    std::shared_ptr<const Tensor> tensor = parameter.tensor;
    if (tensor->dtype() == change.from) {
      tensor = std::make_shared<Tensor>(Cast(*tensor, change.to));
      if (warnings != nullptr) WarnOfOverflow(name, *parameter.tensor, *tensor, *warnings);
    }
    copy->AddParameter(name, std::move(tensor));
  }
  for (const auto& [path, module] : graph.modules()) {
    RETURN_IF_ERROR(
        copy->AddModule(path, module->op->name, Changed(module->attributes, change), module->parameters).status());
  }
  HashMap<const Node*, Node*> copies;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    std::vector<Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(operand == nullptr ? nullptr : copies[operand]);
    ASSIGN_OR_RETURN(Node * added, AddNode(*copy, *node, std::move(operands), change));
    added->AddSources(node->sources());
    copies[node] = added;
  }
  return copy;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> HalfPrecision(const Graph& graph, std::vector<std::string>* warnings) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next())
    RETURN_IF_ERROR(CheckNotQuantized(*node));
  return ChangedCopy(graph, {DType::kF32, DType::kF16}, warnings);
}

absl::StatusOr<std::unique_ptr<Graph>> SinglePrecision(const Graph& graph) {
  return ChangedCopy(graph, {DType::kF16, DType::kF32}, nullptr);
}

int CountHalfCalls(const Graph& graph) {
  int count = 0;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (!node->is_call() || node->IsOp("to")) continue;
    bool half = false;
    for (const TensorType& type : node->type().elements()) half |= type.dtype == DType::kF16;
    for (const Node* operand : node->operands()) half |= operand != nullptr && IsOf(operand->type(), DType::kF16);
    count += half;
  }
  return count;
}

}  // namespace fuselage::runtime

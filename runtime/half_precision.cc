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

bool IsF32(const ir::Type& type) { return type.is_tensor() && type.tensor().dtype == DType::kF32; }

absl::Status CheckNotQuantized(const Node& node) {
  for (const TensorType& type : node.type().elements()) {
    if (!type.quant) continue;
    return absl::UnimplementedError(
        absl::StrCat("%", node.name(), " is ", ToString(type), ", wanted no codes in a network for FP16"));
  }
  return absl::OkStatus();
}

AttributeMap HalfAttributes(AttributeMap attributes) {
  for (auto& [name, value] : attributes) {
    if (value.kind() == AttributeKind::kDType && value.as_dtype() == DType::kF32) value = DType::kF16;
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
absl::StatusOr<Node*> AddNode(Graph& half, const Node& node, std::vector<Node*> operands) {
  switch (node.kind()) {
    case NodeKind::kPlaceholder: {
      ASSIGN_OR_RETURN(Node * input, half.AddPlaceholder(node.name(), node.tensor_type()));
      return IsF32(node.type()) ? AddCast(half, input, DType::kF16) : input;
    }
    case NodeKind::kGetAttr: return half.AddGetAttr(node.name(), node.target());
    case NodeKind::kCallFunction:
      return half.AddFunction(node.name(), node.target(), std::move(operands), HalfAttributes(node.attributes()));
    case NodeKind::kCallMethod:
      return half.AddMethod(node.name(), node.target(), std::move(operands), HalfAttributes(node.attributes()));
    case NodeKind::kCallModule: return half.AddModuleCall(node.name(), node.target(), std::move(operands));
    case NodeKind::kOutput: break;
  }
  for (int i = 0; i < node.num_operands(); ++i) {
    if (!IsF32(node.operand(i)->type())) continue;
    ASSIGN_OR_RETURN(operands[i], AddCast(half, operands[i], DType::kF32));
  }
  return half.AddOutput(std::move(operands));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> HalfPrecision(const Graph& graph, std::vector<std::string>* warnings) {
  auto half = std::make_unique<Graph>(graph.name(), graph.ops());
  for (const auto& [name, parameter] : graph.parameters()) {
    std::shared_ptr<const Tensor> tensor = parameter.tensor;
    if (tensor->dtype() == DType::kF32) {
      tensor = std::make_shared<Tensor>(Cast(*tensor, DType::kF16));
      if (warnings != nullptr) WarnOfOverflow(name, *parameter.tensor, *tensor, *warnings);
    }
    half->AddParameter(name, std::move(tensor));
  }
  for (const auto& [path, module] : graph.modules()) {
    RETURN_IF_ERROR(
        half->AddModule(path, module->op->name, HalfAttributes(module->attributes), module->parameters).status());
  }
  HashMap<const Node*, Node*> copies;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    RETURN_IF_ERROR(CheckNotQuantized(*node));
    std::vector<Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(operand == nullptr ? nullptr : copies[operand]);
    ASSIGN_OR_RETURN(Node * copy, AddNode(*half, *node, std::move(operands)));
    copy->AddSources(node->sources());
    copies[node] = copy;
  }
  return half;
}

}  // namespace fuselage::runtime

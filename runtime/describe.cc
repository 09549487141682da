#include "runtime/describe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::runtime {

using ir::Node;
using ir::NodeKind;

namespace {

// Null: absent.
using Values = std::vector<std::shared_ptr<const Tensor>>;

absl::StatusOr<Tensor> Evaluated(const Node& node, const Values& operands) {
  std::vector<std::vector<Tensor>> values(operands.size());
  std::vector<const std::vector<Tensor>*> pointers;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] != nullptr) values[i].push_back(*operands[i]);
    pointers.push_back(operands[i] == nullptr ? nullptr : &values[i]);
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> results,
                   ir::Evaluate(*node.op(), CompleteAttributes(node), std::move(pointers), node.type()));
  return std::move(results[0]);
}

}  // namespace

absl::StatusOr<Constants> ConstantsOf(const ir::Graph& graph, int64_t max_bytes) {
  Constants constants;
  int64_t bytes = 0;
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->kind() == NodeKind::kGetAttr) {
      constants.emplace(node, graph.FindParameterOrNull(node->target())->tensor);
    }
    if (!node->is_call() || node->num_uses() == 0 || !node->type().is_tensor()) continue;
    Values operands;
    bool all_known = true;
    for (const ir::Argument& argument : node->arguments()) {
      operands.push_back(ConstantOrNull(argument, constants));
      all_known = all_known && (argument.absent() || operands.back() != nullptr);
    }
    if (!all_known) continue;
    bytes += node->tensor_type().byte_size();
    if (max_bytes > 0 && bytes > max_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat("%", node->name(), ": the constants up to this node take ",
                                                       bytes, " bytes, the limit is ", max_bytes));
    }
    auto value = Evaluated(*node, operands);
    if (absl::IsUnimplemented(value.status())) continue;  // As it is at run time.
    if (!value.ok()) return Annotate(value.status(), absl::StrCat("%", node->name(), " (", node->op()->name, ")"));
    constants.emplace(node, std::make_shared<const Tensor>(*std::move(value)));
  }
  return constants;
}

std::shared_ptr<const Tensor> ConstantOrNull(const ir::Argument& argument, const Constants& constants) {
  if (argument.value == nullptr) return argument.parameter == nullptr ? nullptr : argument.parameter->tensor;
  const auto found = constants.find(argument.value);
  return found == constants.end() ? nullptr : found->second;
}

AttributeMap CompleteAttributes(const Node& node) {
  AttributeMap attributes;
  for (const ir::AttributeSpec& spec : node.op()->attributes) attributes.emplace(spec.name, node.attribute(spec.name));
  return attributes;
}

TensorType RowMajorType(TensorType type) {
  type.layout = Layout::kRowMajor;
  return type;
}

absl::StatusOr<Description> Describe(const Node& node, const Constants& constants) {
  Description result;
  kernels::KernelDesc& desc = result.desc;
  desc.op = node.op()->name;
  desc.attributes = CompleteAttributes(node);
  for (const ir::Argument& argument : node.arguments()) {
    const std::shared_ptr<const Tensor> constant = ConstantOrNull(argument, constants);
    if (constant != nullptr) desc.parameters[argument.spec->name] = constant;
    if (argument.spec->parameter) {
      if (constant == nullptr && !argument.absent()) {
        return absl::UnimplementedError(absl::StrCat(argument.spec->name, " is computed at run time"));
      }
      continue;
    }
    if (!argument.absent() && !argument.value->type().is_tensor()) return absl::UnimplementedError("tuple operand");
    result.inputs.push_back(argument.value);
    desc.inputs.push_back(argument.absent() ? std::nullopt
                                            : std::make_optional(RowMajorType(argument.value->tensor_type())));
  }
  for (const TensorType& type : node.type().elements()) desc.outputs.push_back(RowMajorType(type));
  return result;
}

}  // namespace fuselage::runtime

#include "runtime/describe.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::runtime {

using ir::Node;
using ir::NodeKind;

namespace {

absl::StatusOr<Tensor> Evaluated(const Node& node, const std::vector<Operand>& operands) {
  std::vector<std::vector<Tensor>> values(operands.size());
  std::vector<const std::vector<Tensor>*> pointers;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].absent()) values[i].push_back(*operands[i].constant);
    pointers.push_back(operands[i].absent() ? nullptr : &values[i]);
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
    const std::vector<Operand> operands = OperandsOf(graph, *node, constants);
    const bool all_known = std::all_of(operands.begin(), operands.end(),
                                       [](const Operand& o) { return o.absent() || o.constant != nullptr; });
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

std::vector<Operand> OperandsOf(const ir::Graph& graph, const Node& node, const Constants& constants) {
  std::vector<Operand> operands;
  int next = 0;
  const auto take = [&](const ir::OperandSpec& spec) {
    Operand operand{&spec, next < node.num_operands() ? node.operand(next) : nullptr, nullptr};
    ++next;
    const auto constant = constants.find(operand.value);
    if (constant != constants.end()) operand.constant = constant->second;
    operands.push_back(std::move(operand));
  };
  for (const ir::OperandSpec& spec : node.op()->operands) {
    if (spec.variadic) {
      while (next < node.num_operands()) take(spec);
    } else if (spec.parameter && node.module() != nullptr) {
      const auto it = node.module()->parameters.find(spec.name);
      const bool found = it != node.module()->parameters.end();
      operands.push_back({&spec, nullptr, found ? graph.FindParameterOrNull(it->second)->tensor : nullptr});
    } else {
      take(spec);
    }
  }
  return operands;
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

absl::StatusOr<Description> Describe(const ir::Graph& graph, const Node& node, const Constants& constants) {
  Description result;
  kernels::KernelDesc& desc = result.desc;
  desc.op = node.op()->name;
  desc.attributes = CompleteAttributes(node);
  for (const Operand& operand : OperandsOf(graph, node, constants)) {
    if (operand.constant != nullptr) desc.parameters[operand.spec->name] = operand.constant.get();
    if (operand.spec->parameter) {
      if (operand.constant == nullptr && !operand.absent()) {
        return absl::UnimplementedError(absl::StrCat(operand.spec->name, " is computed at run time"));
      }
      continue;
    }
    if (!operand.absent() && !operand.value->type().is_tensor()) return absl::UnimplementedError("tuple operand");
    result.inputs.push_back(operand.value);
    desc.inputs.push_back(operand.absent() ? std::nullopt
                                           : std::make_optional(RowMajorType(operand.value->tensor_type())));
  }
  for (const TensorType& type : node.type().elements()) desc.outputs.push_back(RowMajorType(type));
  return result;
}

}  // namespace fuselage::runtime

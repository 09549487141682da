#include "runtime/describe.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fuselage::runtime {

using ir::Node;
using ir::NodeKind;

std::vector<Operand> OperandsOf(const ir::Graph& graph, const Node& node) {
  std::vector<Operand> operands;
  int next = 0;
  const auto take = [&](const ir::OperandSpec& spec) {
    Operand operand{&spec, next < node.num_operands() ? node.operand(next) : nullptr, nullptr};
    ++next;
    if (operand.value != nullptr && operand.value->kind() == NodeKind::kGetAttr) {
      operand.constant = graph.FindParameterOrNull(operand.value->target())->tensor;
    }
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

absl::StatusOr<Description> Describe(const ir::Graph& graph, const Node& node) {
  Description result;
  kernels::KernelDesc& desc = result.desc;
  desc.op = node.op()->name;
  desc.attributes = CompleteAttributes(node);
  for (const Operand& operand : OperandsOf(graph, node)) {
    if (operand.spec->parameter) {
      if (operand.constant != nullptr) {
        desc.parameters[operand.spec->name] = operand.constant.get();
      } else if (!operand.absent()) {
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

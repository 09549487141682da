#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/text.h"

namespace fuselage::ir {
namespace {

constexpr int64_t kMostInlineValues = 16;

std::string ValueText(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kI64) return absl::StrCat(tensor.data<int64_t>()[i]);
  if (tensor.dtype() == DType::kF64) return ShortestText(tensor.data<double>()[i]);
  if (IsFloat(tensor.dtype())) return ShortestText(static_cast<float>(tensor.At(i)));
  return absl::StrCat(static_cast<int64_t>(tensor.At(i)));
}

std::string ParameterText(const Parameter& parameter) {
  if (parameter.seed) return absl::StrCat("seed(", *parameter.seed, ")");
  const Tensor& tensor = *parameter.tensor;
  if (IsPrintedAsData(parameter)) return absl::StrFormat("data(%016x)", Fingerprint(tensor));
  std::string text = "[";
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", ValueText(tensor, i));
  }
  return text + "]";
}

void AppendAttributes(const AttributeMap& attributes, std::vector<std::string>* arguments) {
  for (const auto& [name, attribute] : attributes) {
    arguments->push_back(absl::StrCat(name, "=", attribute.ToString()));
  }
}

std::string ModuleText(const Module& module) {
  std::vector<std::string> arguments;
  AppendAttributes(module.attributes, &arguments);
  for (const auto& [operand, parameter] : module.parameters) {
    arguments.push_back(absl::StrCat(operand, "=@", parameter));
  }
  return absl::StrCat("module @", module.path, " = ", module.op->name, "(", absl::StrJoin(arguments, ", "), ")");
}

}  // namespace

bool IsPrintedAsData(const Parameter& parameter) {
  return !parameter.seed && parameter.tensor->num_elements() > kMostInlineValues;
}

std::string PrintNode(const Node& node) {
  std::vector<std::string> arguments;
  for (int i = 0; i < node.num_operands(); ++i) {
    arguments.push_back(node.operand(i) == nullptr ? "none" : absl::StrCat("%", node.operand(i)->name()));
  }
  if (node.kind() == NodeKind::kCallFunction || node.kind() == NodeKind::kCallMethod) {
    AppendAttributes(node.attributes(), &arguments);
  }
  const std::string list = absl::StrCat("(", absl::StrJoin(arguments, ", "), ")");
  if (node.kind() == NodeKind::kOutput) return "output" + list;

  std::string text = absl::StrCat("%", node.name(), ": ", ToString(node.type()), " = ", NodeKindName(node.kind()));
  switch (node.kind()) {
    case NodeKind::kPlaceholder: break;
    case NodeKind::kGetAttr: absl::StrAppend(&text, " @", node.target()); break;
    case NodeKind::kCallModule: absl::StrAppend(&text, " @", node.target(), list); break;
    default: absl::StrAppend(&text, " ", node.target(), list); break;
  }
  if (!node.sources().empty()) absl::StrAppend(&text, " from(", absl::StrJoin(node.sources(), ", "), ")");
  return text;
}

std::string Print(const Graph& graph) {
  std::string text = absl::StrCat("graph @", graph.name(), " {\n");
  for (const auto& [name, parameter] : graph.parameters()) {
    absl::StrAppend(&text, "  param @", name, ": ", fuselage::ToString(parameter.tensor->type()), " = ",
                    ParameterText(parameter), "\n");
  }
  for (const auto& [path, module] : graph.modules()) absl::StrAppend(&text, "  ", ModuleText(*module), "\n");
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    absl::StrAppend(&text, "  ", PrintNode(*node), "\n");
  }
  return text + "}\n";
}

}  // namespace fuselage::ir

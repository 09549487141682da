#include "interpreter/interpreter.h"

#include "absl/strings/str_cat.h"
#include "ir/base/hash_map.h"

namespace fuselage::interpreter {
namespace {

using Value = std::vector<Tensor>;  // One tensor, or the elements of a tuple.

absl::Status CheckInput(const ir::Node& placeholder, const Tensor& input) {
  const TensorType& wanted = placeholder.tensor_type();
  if (input.dtype() == wanted.dtype && input.shape() == wanted.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("%", placeholder.name(), ": found an input of type ",
                                                 ToString(input.type()), ", wanted ", ToString(wanted)));
}

// Reference evaluation holds a few copies of a value, some in double. A graph whose values are larger is for a compiled
// network, or a mistake in its shapes, which must not exhaust the machine.
constexpr int64_t kMostBytes = int64_t{4} << 30;

absl::Status CheckSize(const ir::Type& type) {
  for (const TensorType& element : type.elements()) {
    if (element.byte_size() <= kMostBytes) continue;
    return absl::ResourceExhaustedError(absl::StrCat(ToString(element), " takes ", element.byte_size(),
                                                     " bytes, the interpreter's limit is ", kMostBytes));
  }
  return absl::OkStatus();
}

class Evaluation {
 public:
  explicit Evaluation(const ir::Graph& graph) : graph_(graph) {}

  absl::StatusOr<Value> Compute(const ir::Node& node) const {
    if (node.kind() == ir::NodeKind::kGetAttr) return ParameterValue(node.target());
    RETURN_IF_ERROR(CheckSize(node.type()));
    std::vector<Value> parameters;
    return ir::Evaluate(*node.op(), node.attributes(), Operands(node, &parameters), node.type());
  }

  void Store(const ir::Node& node, Value value) { values_[&node] = std::move(value); }
  const Value& value(const ir::Node& node) const { return values_.at(&node); }

  // A value goes when its last user has run.
  void Release(const ir::Node& user) {
    for (const ir::Node* operand : user.operands()) {
      if (operand == nullptr) continue;
      if (++reads_[operand] == operand->num_uses()) values_.erase(operand);
    }
  }

 private:
  Value ParameterValue(const std::string& name) const {
    Value value;
    value.push_back(*graph_.FindParameterOrNull(name)->tensor);
    return value;
  }

  // In schema order: a module's parameters, held by `parameters`, stand where the schema has them.
  std::vector<const Value*> Operands(const ir::Node& node, std::vector<Value>* parameters) const {
    const std::vector<ir::Argument> arguments = node.arguments();
    parameters->reserve(arguments.size());
    std::vector<const Value*> operands;
    for (const ir::Argument& argument : arguments) {
      if (argument.value != nullptr) {
        operands.push_back(&values_.at(argument.value));
      } else if (argument.parameter != nullptr) {
        operands.push_back(&parameters->emplace_back(Value{*argument.parameter->tensor}));
      } else {
        operands.push_back(nullptr);
      }
    }
    return operands;
  }

  const ir::Graph& graph_;
  HashMap<const ir::Node*, Value> values_;
  HashMap<const ir::Node*, int> reads_;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> Run(const ir::Graph& graph, absl::Span<const Tensor> inputs) {
  return Run(graph, inputs, nullptr);
}

absl::StatusOr<std::vector<Tensor>> Run(const ir::Graph& graph, absl::Span<const Tensor> inputs,
                                        const Observer& observer) {
  Evaluation evaluation(graph);
  size_t next_input = 0;
  std::vector<Tensor> outputs;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    if (node->kind() == ir::NodeKind::kOutput) {
      for (const ir::Node* operand : node->operands()) {
        const Value& elements = evaluation.value(*operand);
        outputs.insert(outputs.end(), elements.begin(), elements.end());
      }
      continue;
    }
    Value value;
    if (node->kind() == ir::NodeKind::kPlaceholder) {
      if (next_input == inputs.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("%", node->name(), ": no input, only ", inputs.size(), " given"));
      }
      const Tensor& input = inputs[next_input++];
      RETURN_IF_ERROR(CheckInput(*node, input));
      value.push_back(input);
      value[0].set_type(node->tensor_type());
    } else {
      absl::StatusOr<Value> computed = evaluation.Compute(*node);
      if (!computed.ok()) return Annotate(computed.status(), absl::StrCat("%", node->name()));
      value = *std::move(computed);
    }
    if (observer) RETURN_IF_ERROR(observer(*node, value));
    if (node->num_uses() > 0) evaluation.Store(*node, std::move(value));
    evaluation.Release(*node);
  }
  if (next_input != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.size(), " inputs given, the graph has ", next_input));
  }
  return outputs;
}

}  // namespace fuselage::interpreter

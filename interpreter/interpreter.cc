#include "interpreter/interpreter.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace fuselage::interpreter {
namespace {

using Value = std::vector<Tensor>;  // One tensor, or the elements of a tuple.

absl::Status CheckInput(const ir::Node& placeholder, const Tensor& input) {
  const TensorType& wanted = placeholder.tensor_type();
  if (input.dtype() == wanted.dtype && input.shape() == wanted.shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("%", placeholder.name(), ": found an input of type ",
                                                 ToString(input.type()), ", wanted ", ToString(wanted)));
}

class Evaluation {
 public:
  explicit Evaluation(const ir::Graph& graph) {
    for (const auto& [name, parameter] : graph.parameters()) parameters_[name].push_back(*parameter.tensor);
  }

  absl::StatusOr<Value> Compute(const ir::Node& node) const {
    if (node.kind() == ir::NodeKind::kGetAttr) return parameters_.at(node.target());
    absl::StatusOr<Value> value = ir::Evaluate(*node.op(), node.attributes(), Operands(node), node.type());
    if (!value.ok()) return Annotate(value.status(), absl::StrCat("%", node.name()));
    return value;
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
  // In schema order: a module's parameters stand where the schema has them.
  std::vector<const Value*> Operands(const ir::Node& node) const {
    std::vector<const Value*> operands;
    int next = 0;
    const auto take = [&]() -> const Value* {
      const ir::Node* operand = next < node.num_operands() ? node.operand(next) : nullptr;
      ++next;
      return operand == nullptr ? nullptr : &values_.at(operand);
    };
    for (const ir::OperandSpec& spec : node.op()->operands) {
      if (spec.variadic) break;
      if (node.module() != nullptr && spec.parameter) {
        const auto it = node.module()->parameters.find(spec.name);
        operands.push_back(it == node.module()->parameters.end() ? nullptr : &parameters_.at(it->second));
      } else {
        operands.push_back(take());
      }
    }
    while (next < node.num_operands()) operands.push_back(take());
    return operands;
  }

  absl::flat_hash_map<std::string, Value> parameters_;
  absl::flat_hash_map<const ir::Node*, Value> values_;
  absl::flat_hash_map<const ir::Node*, int> reads_;
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
      for (const ir::Node* operand : node->operands()) outputs.push_back(evaluation.value(*operand)[0]);
      continue;
    }
    Value value;
    if (node->kind() == ir::NodeKind::kPlaceholder) {
      if (next_input == inputs.size()) {
        return absl::InvalidArgumentError(absl::StrCat("%", node->name(), ": no input, only ", inputs.size(), " given"));
      }
      const Tensor& input = inputs[next_input++];
      RETURN_IF_ERROR(CheckInput(*node, input));
      value.push_back(input);
      value[0].set_type(node->tensor_type());
    } else {
      ASSIGN_OR_RETURN(value, evaluation.Compute(*node));
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

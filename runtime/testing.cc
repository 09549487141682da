#include "runtime/testing.h"

#include <cstdio>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/comparison.h"

namespace fuselage::runtime {
namespace {

void AbortUnlessOk(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

template <typename T>
T ValueOrAbort(absl::StatusOr<T> value) {
  AbortUnlessOk(value.status());
  return *std::move(value);
}

}  // namespace

ir::Node* GraphBuilder::Input(TensorType type) { return ValueOrAbort(graph_.AddPlaceholder("x", std::move(type))); }

ir::Node* GraphBuilder::Constant(Tensor tensor) {
  const std::string name = graph_.AddParameter("c", std::make_shared<Tensor>(std::move(tensor)));
  return ValueOrAbort(graph_.AddGetAttr("c", name));
}

ir::Node* GraphBuilder::Constant(Shape shape) {
  return Constant(SeededTensor({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}, ++seed_));
}

ir::Node* GraphBuilder::Call(absl::string_view op, std::vector<ir::Node*> operands, AttributeMap attributes) {
  return ValueOrAbort(graph_.AddFunction(op, op, std::move(operands), std::move(attributes)));
}

ir::Node* GraphBuilder::CallModule(absl::string_view op, std::vector<ir::Node*> operands, AttributeMap attributes,
                                   std::vector<std::pair<std::string, Tensor>> parameters) {
  const std::string path = graph_.UniqueModulePath("m");
  std::map<std::string, std::string> names;
  for (auto& [operand, tensor] : parameters) {
    names[operand] = graph_.AddParameter(absl::StrCat(path, ".", operand), std::make_shared<Tensor>(std::move(tensor)));
  }
  ValueOrAbort(graph_.AddModule(path, op, std::move(attributes), std::move(names)));
  return ValueOrAbort(graph_.AddModuleCall(op, path, std::move(operands)));
}

const ir::Graph& GraphBuilder::Output(std::vector<ir::Node*> values) {
  ValueOrAbort(graph_.AddOutput(std::move(values)));
  AbortUnlessOk(graph_.Verify());
  return graph_;
}

std::vector<Tensor> SeededInputs(const ir::Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const ir::Node* node : graph.placeholders()) inputs.push_back(SeededTensor(node->tensor_type(), seed++));
  return inputs;
}

double RelativeError(const Tensor& found, const Tensor& wanted) {
  if (found.type() != wanted.type()) return std::numeric_limits<double>::infinity();
  const Difference difference = Compare(wanted, found);
  return difference.max_abs_error == 0 ? 0 : difference.max_abs_error / difference.magnitude;
}

std::string VariantOf(const Executable& executable, absl::string_view node) {
  for (const StepProfile& step : executable.profile()) {
    if (step.node == node) return step.variant;
  }
  return "";
}

int CountSteps(const Executable& executable, absl::string_view op) {
  int count = 0;
  for (const StepProfile& step : executable.profile()) count += step.op == op;
  return count;
}

}  // namespace fuselage::runtime

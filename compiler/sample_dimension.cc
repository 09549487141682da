#include "compiler/sample_dimension.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace fuselage::compiler {
namespace {

using ir::Node;

bool IsOneSample(const Shape& shape) { return !shape.empty() && shape[0] == 1; }

Shape WithSamples(Shape shape) {
  shape.insert(shape.begin(), 1);
  return shape;
}

absl::StatusOr<Node*> Reshape(Node* x, const std::string& name, Shape shape, Node* before) {
  return x->graph().AddFunction(name, "reshape", {x}, {{"shape", std::move(shape)}, {"allow_zero", true}}, before);
}

}  // namespace

absl::Status AddSampleDimension(ir::Graph* graph) {
  for (Node* const input : graph->placeholders()) {
    TensorType type = input->tensor_type();
    if (IsOneSample(type.shape)) continue;
    const Shape shape = type.shape;
    const std::string name = input->name();
    Node* const before = input->next();
    const std::vector<ir::Use> uses = input->uses();
    for (const ir::Use& use : uses) use.user->set_operand(use.index, nullptr);
    graph->Erase(input);
    type.shape = WithSamples(shape);
    ASSIGN_OR_RETURN(Node * x, graph->AddPlaceholder(name, type, before));
    ASSIGN_OR_RETURN(x, Reshape(x, absl::StrCat(name, ".sample"), shape, before));
    for (const ir::Use& use : uses) use.user->set_operand(use.index, x);
  }
  Node* const output = graph->output();
  for (int i = 0; i < static_cast<int>(output->operands().size()); ++i) {
    Node* const x = output->operands()[i];
    const Shape& shape = x->tensor_type().shape;
    if (IsOneSample(shape)) continue;
    ASSIGN_OR_RETURN(Node * y, Reshape(x, absl::StrCat(x->name(), ".sample"), WithSamples(shape), output));
    output->set_operand(i, y);
  }
  return absl::OkStatus();
}

}  // namespace fuselage::compiler

#include "compiler/byte_input.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace fuselage::compiler {
namespace {

using ir::Node;

absl::Status CheckValues(const std::vector<float>& values, const char* what, int64_t channels, float above) {
  if (values.size() > 1 && static_cast<int64_t>(values.size()) != channels) {
    return UsageError(
        absl::StrCat(what, " has ", values.size(), " values, want 1 or one for each of ", channels, " channels"));
  }
  for (const float value : values) {
    if (std::isfinite(value) && value > above) continue;
    return UsageError(absl::StrCat(what, " is ", value, ", want ", above == 0 ? "> 0" : "a finite number"));
  }
  return absl::OkStatus();
}

// x <op> values, which stand along the channels.
absl::StatusOr<Node*> Apply(const char* op, Node* x, const std::string& name, const std::vector<float>& values,
                            Node* before) {
  if (values.empty()) return x;
  ir::Graph& graph = x->graph();
  const Shape shape = values.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(values.size()), 1, 1};
  const std::string parameter = graph.AddParameter(name, std::make_shared<const Tensor>(Tensor::Of(shape, values)));
  ASSIGN_OR_RETURN(Node * constant, graph.AddGetAttr(name, parameter, before));
  return graph.AddFunction(absl::StrCat(name, ".", op), op, {x, constant}, {}, before);
}

}  // namespace

absl::Status TakeBytes(const ByteInput& bytes, ir::Graph* graph) {
  const std::vector<Node*> inputs = graph->placeholders();
  if (inputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", inputs.size(), " inputs, want one of images"));
  }
  Node* const floats = inputs[0];
  TensorType type = floats->tensor_type();
  const std::string name = floats->name();
  if ((type.dtype != DType::kF32 && type.dtype != DType::kF16) || type.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("input %", name, " is ", ToString(type),
                                                   ", want f32 [batch, channels, height, width], to take its bytes"));
  }
  const int64_t channels = type.shape[1];
  RETURN_IF_ERROR(CheckValues(bytes.mean, "mean", channels, -HUGE_VALF));
  RETURN_IF_ERROR(CheckValues(bytes.std, "std", channels, 0));

  Node* const before = floats->next();
  const std::vector<ir::Use> uses = floats->uses();
  for (const ir::Use& use : uses) use.user->set_operand(use.index, nullptr);
  graph->Erase(floats);
  type.dtype = DType::kU8;
  if (bytes.pixels) std::rotate(type.shape.begin() + 1, type.shape.begin() + 2, type.shape.end());
  ASSIGN_OR_RETURN(Node * x, graph->AddPlaceholder(name, type, before));
  if (bytes.pixels) {
    const AttributeMap dims = {{"dims", std::vector<int64_t>{0, 3, 1, 2}}};
    ASSIGN_OR_RETURN(x, graph->AddFunction(absl::StrCat(name, ".planes"), "permute", {x}, dims, before));
  }
  ASSIGN_OR_RETURN(x, graph->AddFunction(absl::StrCat(name, ".floats"), "to", {x}, {{"dtype", DType::kF32}}, before));
  ASSIGN_OR_RETURN(x, Apply("div", x, absl::StrCat(name, ".most"), {255}, before));
  ASSIGN_OR_RETURN(x, Apply("sub", x, absl::StrCat(name, ".mean"), bytes.mean, before));
  ASSIGN_OR_RETURN(x, Apply("div", x, absl::StrCat(name, ".std"), bytes.std, before));
  for (const ir::Use& use : uses) use.user->set_operand(use.index, x);
  return absl::OkStatus();
}

}  // namespace fuselage::compiler

// For tests: builds graphs call by call, and compares an executable with the interpreter.
#ifndef FUSELAGE_RUNTIME_TESTING_H_
#define FUSELAGE_RUNTIME_TESTING_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "runtime/executable.h"

namespace fuselage::runtime {

// Aborts with the status where an edit fails: a test's own mistake.
class GraphBuilder {
 public:
  explicit GraphBuilder(const ir::OpRegistry& ops) : graph_("test", ops) {}

  ir::Node* Input(TensorType type);
  ir::Node* Input(Shape shape) { return Input({DType::kF32, std::move(shape), std::nullopt, Layout::kRowMajor}); }

  // A get_attr of these values.
  ir::Node* Constant(Tensor tensor);
  // Holds seeded values in [-1, 1).
  ir::Node* Constant(Shape shape);

  ir::Node* Call(absl::string_view op, std::vector<ir::Node*> operands, AttributeMap attributes = {});
  // A call_module with constant parameters.
  ir::Node* CallModule(absl::string_view op, std::vector<ir::Node*> operands, AttributeMap attributes,
                       std::vector<std::pair<std::string, Tensor>> parameters);
  // Ends the graph; it is verified.
  const ir::Graph& Output(std::vector<ir::Node*> values);

  const ir::Graph& graph() const { return graph_; }

 private:
  ir::Graph graph_;
  uint64_t seed_ = 100;
};

// One seeded tensor per placeholder.
std::vector<Tensor> SeededInputs(const ir::Graph& graph, uint64_t seed = 1);

// The largest difference over the largest magnitude that `wanted` has; 0 where both hold the same bytes, infinity
// where types or NaNs differ.
double RelativeError(const Tensor& found, const Tensor& wanted);

// The variant of the step that runs the node; "" where there is none.
std::string VariantOf(const Executable& executable, absl::string_view node);
int CountSteps(const Executable& executable, absl::string_view op);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_TESTING_H_

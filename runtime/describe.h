// Describe: a call of a graph as kernels see it.
#ifndef FUSELAGE_RUNTIME_DESCRIBE_H_
#define FUSELAGE_RUNTIME_DESCRIBE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "kernels/core/kernel.h"

namespace fuselage::runtime {

// One operand of a call in schema order, wherever it comes from.
struct Operand {
  const ir::OperandSpec* spec = nullptr;
  const ir::Node* value = nullptr;         // Null for a module's parameter, and where absent.
  std::shared_ptr<const Tensor> constant;  // Of a module's parameter or a get_attr.

  bool absent() const { return value == nullptr && constant == nullptr; }
};

std::vector<Operand> OperandsOf(const ir::Graph& graph, const ir::Node& node);

// With defaults.
AttributeMap CompleteAttributes(const ir::Node& node);

TensorType RowMajorType(TensorType type);

struct Description {
  kernels::KernelDesc desc;             // Row-major and dense; isa and threads are the caller's to set.
  std::vector<const ir::Node*> inputs;  // The values behind desc.inputs; null: absent.
};

// Points into the graph's parameters. Unimplemented: a parameter that is computed at run time, a tuple as operand.
absl::StatusOr<Description> Describe(const ir::Graph& graph, const ir::Node& node);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_DESCRIBE_H_

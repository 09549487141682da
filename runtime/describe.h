// Describe: a call of a graph as kernels see it.
#ifndef FUSELAGE_RUNTIME_DESCRIBE_H_
#define FUSELAGE_RUNTIME_DESCRIBE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/base/hash_map.h"
#include "ir/graph.h"
#include "kernels/core/kernel.h"

namespace fuselage::runtime {

// The values that no run changes: get_attrs, and calls on nothing else.
using Constants = HashMap<const ir::Node*, std::shared_ptr<const Tensor>>;

// Those of the graph; calls are evaluated by their ops' reference, once and for all runs, so that no run dequantizes a
// weight. ResourceExhausted where the results of calls take more than `max_bytes` bytes (0: no limit).
absl::StatusOr<Constants> ConstantsOf(const ir::Graph& graph, int64_t max_bytes);

// The value of an argument that no run changes: a parameter, or one of the constants.
std::shared_ptr<const Tensor> ConstantOrNull(const ir::Argument& argument, const Constants& constants);

// With defaults.
AttributeMap CompleteAttributes(const ir::Node& node);

TensorType RowMajorType(TensorType type);

struct Description {
  kernels::KernelDesc desc;             // Row-major and dense; isa and threads are the caller's to set.
  std::vector<const ir::Node*> inputs;  // The values behind desc.inputs; null: absent.
};

// Points into the graph's parameters and the constants. Unimplemented: a parameter that is computed at run time, a
// tuple as operand.
absl::StatusOr<Description> Describe(const ir::Node& node, const Constants& constants);

}  // namespace fuselage::runtime

#endif  // FUSELAGE_RUNTIME_DESCRIBE_H_

// Runs any graph through its ops' reference evaluation: the oracle of tests and of the pipeline's numeric checks.
#ifndef FUSELAGE_INTERPRETER_INTERPRETER_H_
#define FUSELAGE_INTERPRETER_INTERPRETER_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"

namespace fuselage::interpreter {

// One tensor for each placeholder, in order, of its shape and element type. Returns the operands of the output node, a
// tuple as its elements. A value is freed after its last use. Errors name the node; a value of more than 4 GiB is
// ResourceExhausted.
absl::StatusOr<std::vector<Tensor>> Run(const ir::Graph& graph, absl::Span<const Tensor> inputs);

// Called after each node with its value (several tensors for a tuple).
using Observer = std::function<absl::Status(const ir::Node& node, absl::Span<const Tensor> value)>;
absl::StatusOr<std::vector<Tensor>> Run(const ir::Graph& graph, absl::Span<const Tensor> inputs,
                                        const Observer& observer);

}  // namespace fuselage::interpreter

#endif  // FUSELAGE_INTERPRETER_INTERPRETER_H_

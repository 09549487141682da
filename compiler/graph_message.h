// A graph as a message of artifact.proto and back.
#ifndef FUSELAGE_COMPILER_GRAPH_MESSAGE_H_
#define FUSELAGE_COMPILER_GRAPH_MESSAGE_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "compiler/artifact.pb.h"
#include "ir/base/budget.h"
#include "ir/graph.h"

namespace fuselage::compiler {

TypeMessage MessageOf(const TensorType& type);
// InvalidArgument: no such element type, more than 2^32 elements, or quantization parameters that do not fit.
absl::StatusOr<TensorType> TypeOf(const TypeMessage& message);

// Without the parameters' sections; they are in the order of graph.parameters().
GraphMessage MessageOf(const ir::Graph& graph);

// The tensor of this type that a section holds.
using TensorSource = absl::FunctionRef<absl::StatusOr<std::shared_ptr<const Tensor>>(const Section&, TensorType)>;

// `message` may be anything. The graph is verified, and holds what the options allow; the budget is charged with the
// parameters. InvalidArgument names what is wrong, or the parameter whose data has another checksum; Unimplemented: an
// operator that `ops` lacks.
absl::StatusOr<std::unique_ptr<ir::Graph>> GraphOf(const GraphMessage& message, const ir::OpRegistry& ops,
                                                   TensorSource tensors, const ImportOptions& options, Budget* budget);

}  // namespace fuselage::compiler

#endif  // FUSELAGE_COMPILER_GRAPH_MESSAGE_H_

// What must hold of a model before any node is converted.
#ifndef FUSELAGE_FRONTEND_ONNX_STRUCTURE_H_
#define FUSELAGE_FRONTEND_ONNX_STRUCTURE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/hash_map.h"

namespace onnx {
class ModelProto;
class NodeProto;
}  // namespace onnx

namespace fuselage::onnx {

struct Structure {
  int opset = 0;                                // Of the default domain.
  std::vector<const ::onnx::NodeProto*> order;  // Topological; the file's, where that is one.
  HashMap<absl::string_view, int> uses;         // Of each value, by nodes and graph outputs.
};

// Checks versions, that every operator is known (else one Unimplemented that lists all which are not, those in
// subgraphs included), arity, attribute names and types, that names are defined, once, and that there is no cycle.
// The result points into `model`. Errors about a node begin with "node 'name' (Operator): ".
absl::StatusOr<Structure> CheckStructure(const ::onnx::ModelProto& model);

// "node 'name' (Conv)".
std::string NodePlace(const ::onnx::NodeProto& node);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_STRUCTURE_H_

// What must hold of a model before any node is converted.
#ifndef FUSELAGE_FRONTEND_ONNX_STRUCTURE_H_
#define FUSELAGE_FRONTEND_ONNX_STRUCTURE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/base/hash_map.h"

namespace fuselage::onnx::schema {
class FunctionProto;
class GraphProto;
class ModelProto;
class NodeProto;
}  // namespace fuselage::onnx::schema

namespace fuselage::onnx {

// A model's local functions with the opset that their bodies are in, by domain
// ("" for the default one) and name.
struct Function {
  const schema::FunctionProto* proto = nullptr;
  int opset = 0;
};
using Functions = std::map<std::pair<std::string, std::string>, Function>;

const Function* FindFunctionOrNull(const Functions& functions, const schema::NodeProto& node);

struct Structure {
  int opset = 0;  // The default domain's.
  Functions functions;
};

// Checks versions, and that every operator is known: it is the model's
// function, or we have a converter; else one Unimplemented that lists all which
// are not, those in subgraphs and functions included. The result points into
// `model`.
absl::StatusOr<Structure> CheckStructure(const schema::ModelProto& model);

// The nodes of the model's graph, of a subgraph or of a function's body.
struct Body {
  std::vector<const schema::NodeProto*> order;  // Topological; the file's, where that is one.
  HashMap<absl::string_view, int> uses;         // How often nodes and outputs use each value.
};

// Checks arity, attribute names and types, that names are defined, once, and
// that there is no cycle. `nested`: what is defined nowhere comes from the
// graph around it. Errors about a node begin with "node 'name' (Operator): ".
absl::StatusOr<Body> CheckBody(const schema::GraphProto& graph, const Functions& functions, bool nested);

// The values that a node reads: its inputs, and what its subgraphs take from
// around them; a name may repeat.
std::vector<absl::string_view> NamesRead(const schema::NodeProto& node);

// "node 'name' (Conv)".
std::string NodePlace(const schema::NodeProto& node);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_STRUCTURE_H_

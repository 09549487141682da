// Reads an ONNX model, opset 7 to 25, into a Graph: call_function nodes, weights as parameters behind get_attr, and
// everything that depends on constants alone (FP16 weights behind Cast, shape arithmetic) computed here.
//
// A model file is untrusted. Every error begins with "<file>: ", names the node or tensor, and says what was found and
// what was wanted:
//   InvalidArgument    the model breaks a rule of ONNX, or is truncated (the offset is named);
//   Unimplemented      the model is valid, but uses an operator, domain, type or attribute that is not supported; all
//                      unknown operators are listed at once;
//   ResourceExhausted  more than LoadOptions::max_memory_bytes, 1,048,576 nodes, or 8 nested subgraphs;
//   NotFound, PermissionDenied, Unavailable  the file, or one with external data, could not be read.
// A mistake of the caller rather than of the model (a dimension that no shape binds, an output that it has not) is a
// UsageError.
//
// The schema's generated classes live in ::onnx; inside fuselage they need the leading colons.
#ifndef FUSELAGE_FRONTEND_ONNX_ONNX_H_
#define FUSELAGE_FRONTEND_ONNX_ONNX_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "frontend/onnx/names.h"
#include "ir/base/budget.h"
#include "ir/base/tensor.h"
#include "ir/graph.h"
#include "ir/op.h"

namespace fuselage::onnx {

struct LoadOptions : ImportOptions {
  // The shape of an input by its name, as ParseShape reads it, with as many dimensions as the file says; it replaces
  // those that the file fixes. A symbol bound here is bound in the inputs that no shape is given for. A symbolic first
  // dimension that nothing binds is 1 (the batch: see Graph::SetBatch); any other is an error that says which shape to
  // add.
  std::map<std::string, Shape> shapes;
  // Shapes of samples, in dimension 0, that the network is to run on: the other dimensions are those that neither the
  // file nor `shapes` says. One that has a dimension more than the input in the file counts whole inputs by its first.
  std::map<std::string, Shape> sample_shapes;
  // Values that are the outputs in place of the file's, by name: what none of them needs is left out, and need not be
  // supported. Empty: the file's.
  std::vector<std::string> outputs;
  // Inputs to treat as constants of these values: what a graph takes as an input but a compiler must know, such as the
  // target of a Reshape or the condition of an If. Values of another type become those of the input's, exactly if that
  // is of integers, and take its shape where theirs is another.
  std::map<std::string, Tensor> constants;
  // Where not null, receives the file's names.
  Names* names = nullptr;
  // Where not null, receives the files that the model names for external data, each once, in the order of their names.
  // One that nothing reads need not be there.
  std::vector<std::string>* external_files = nullptr;
};

// `ops` must outlive the graph. External data is read from below the folder of `path`.
absl::StatusOr<std::unique_ptr<ir::Graph>> Load(const std::string& path, const ir::OpRegistry& ops,
                                                const LoadOptions& options = {});

// A model from memory; `file` names it in messages. External data is an error.
absl::StatusOr<std::unique_ptr<ir::Graph>> Parse(absl::string_view bytes, absl::string_view file,
                                                 const ir::OpRegistry& ops, const LoadOptions& options = {});

// One serialized TensorProto, such as the input_0.pb files beside ONNX test models. What the IR lacks, such as BFLOAT16
// and INT4, becomes the next wider type.
absl::StatusOr<Tensor> ParseTensor(absl::string_view bytes, absl::string_view file,
                                   int64_t max_memory_bytes = int64_t{8} << 30);

// "input:1,3,224,224" -> {"input", [1,3,224,224]}. The name may hold colons. Errors are InvalidArgument (usage).
absl::StatusOr<std::pair<std::string, Shape>> ParseShape(absl::string_view text);

// "rate:16000", or "scales:1,2,2" -> the name, and the values as f64[n]. Errors as ParseShape's.
absl::StatusOr<std::pair<std::string, Tensor>> ParseConstant(absl::string_view text);

}  // namespace fuselage::onnx

#endif  // FUSELAGE_FRONTEND_ONNX_ONNX_H_

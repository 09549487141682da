// Reads a network's file, of whichever format, into a graph for one sample.
#ifndef FUSELAGE_COMPILER_LOAD_H_
#define FUSELAGE_COMPILER_LOAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/byte_input.h"
#include "compiler/stored_weights.h"
#include "frontend/onnx/names.h"
#include "ir/base/tensor.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "passes/core/pipeline.h"

namespace fuselage {

struct LoadOptions {
  // The shapes of inputs, by their names, where an ONNX file leaves dimensions open.
  std::map<std::string, Shape> shapes;
  // Of the samples that it is to run on, which say what is left open (frontend/onnx/onnx.h).
  std::map<std::string, Shape> sample_shapes;
  // Inputs that are constants, by name (frontend/onnx/onnx.h): onnx::ParseConstant reads one.
  std::map<std::string, Tensor> constants;
  // Values that are the outputs in place of an ONNX file's, which then loads without what follows them.
  std::vector<std::string> outputs;
  int64_t max_memory_bytes = 0;    // 0: the frontend's limit.
  bool allow_nonfinite = false;    // Else a weight that is infinite or not a number is an error.
  std::optional<ByteInput> bytes;  // The network takes these; not of a .fuse file, which has been compiled.
};

namespace compiler {

struct LoadedGraph {
  std::unique_ptr<ir::Graph> graph;
  onnx::Names names;  // Inputs and outputs as the file names them, each once.
  std::vector<std::string> warnings;
  std::vector<passes::PassReport> reports = {};     // What made it from another network.
  std::unique_ptr<StoredWeights> packed = nullptr;  // Of the graph's parameters; null: none are stored.
};

// An .onnx file (frontend/onnx/onnx.h), an .ir file that tools/export_fx.py wrote (frontend/fx/fx.h), or what
// WriteArtifact wrote, by whatever name. `ops` must outlive the graph. `external_files`, where not null, receives the
// other files that hold the network, also where reading one of them fails.
absl::StatusOr<LoadedGraph> LoadGraph(const std::string& path, const ir::OpRegistry& ops, const LoadOptions& options,
                                      std::vector<std::string>* external_files = nullptr);

// The first dimension, which all inputs of the graph must share.
absl::StatusOr<int64_t> BatchOf(const ir::Graph& graph);

// A copy for batches of this size; 0: of the size that it has.
absl::StatusOr<std::unique_ptr<ir::Graph>> WithBatch(const ir::Graph& graph, int64_t batch);

// One tensor for each of the graph's inputs, which have a batch of 1 and are called `names`: any number of samples, in
// dimension 0.
absl::StatusOr<std::vector<Tensor>> SortInputs(std::map<std::string, Tensor> inputs,
                                               const std::vector<std::string>& names, const ir::Graph& graph);

}  // namespace compiler
}  // namespace fuselage

#endif  // FUSELAGE_COMPILER_LOAD_H_

#include "compiler/load.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "compiler/artifact.h"
#include "compiler/sample_dimension.h"
#include "frontend/fx/fx.h"
#include "frontend/onnx/onnx.h"
#include "ir/base/hash_map.h"
#include "ir/base/status.h"
#include "runtime/half_precision.h"

namespace fuselage::compiler {
namespace {

// Numbers names that are there already.
void MakeUnique(std::vector<std::string>* names) {
  std::set<std::string> seen;
  for (std::string& name : *names) {
    const std::string wish = name;
    for (int i = 1; !seen.insert(name).second; ++i) name = absl::StrCat(wish, "_", i);
  }
}

// A graph as text or a .fuse file may give back all that an operator has computed; a network gives tensors.
absl::Status CheckOutputs(const ir::Graph& graph) {
  for (const ir::Node* output : graph.output()->operands()) {
    if (output->type().is_tensor()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("output %", output->name(), " is ", ToString(output->type()), ", want a tensor"));
  }
  return absl::OkStatus();
}

// An input of the network for any number of samples: "f32[n,3,224,224]".
std::string Wanted(const TensorType& type) {
  std::string text = absl::StrCat(DTypeName(type.dtype), "[n");
  for (int axis = 1; axis < type.rank(); ++axis) absl::StrAppend(&text, ",", type.shape[axis]);
  return absl::StrCat(text, "], n samples");
}

absl::Status CheckInput(const std::string& name, const TensorType& found, const TensorType& type, int64_t samples) {
  TensorType wanted = type;
  if (found.rank() > 0 && type.rank() > 0) wanted.shape[0] = found.shape[0];
  wanted.quant.reset();
  if (found == wanted && found.rank() > 0 && found.shape[0] == samples && samples > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("array \"", name, "\": found ", ToString(found), ", wanted ", Wanted(type),
                   found == wanted && samples > 0 ? absl::StrCat(", and ", samples, " as in another input") : ""));
}

// The values that the inputs have a part in.
HashSet<const ir::Node*> ComputedFromInputs(const ir::Graph& graph) {
  HashSet<const ir::Node*> computed;
  for (const ir::Node* node = graph.first(); node != nullptr; node = node->next()) {
    bool reached = node->kind() == ir::NodeKind::kPlaceholder;
    for (const ir::Node* operand : node->operands()) reached = reached || computed.contains(operand);
    if (reached) computed.insert(node);
  }
  return computed;
}

// A copy for one sample in place of `batch`, an error where that cannot be, where an output still has as many, or where
// one has the shape that it had though it is made of the inputs: then dimension 0 of those counts no samples but time
// steps, say, which the network goes through. A constant, such as a detector's anchors, may stay.
absl::StatusOr<std::unique_ptr<ir::Graph>> WithOneSample(const ir::Graph& graph, int64_t batch) {
  std::unique_ptr<ir::Graph> one = graph.Clone();
  RETURN_IF_ERROR(one->SetBatch(1));
  const HashSet<const ir::Node*> computed = ComputedFromInputs(graph);
  const std::vector<ir::Node*> of_all = graph.output()->operands(), of_one = one->output()->operands();
  for (size_t i = 0; i < of_one.size(); ++i) {
    const Shape &was = of_all[i]->tensor_type().shape, &is = of_one[i]->tensor_type().shape;
    const bool has_all = !was.empty() && was[0] == batch && (is.empty() || is[0] != 1);
    if (!has_all && (was != is || !computed.contains(of_all[i]))) continue;
    return absl::InvalidArgumentError(absl::StrCat("output %", of_one[i]->name(), " is still ", ToString(is)));
  }
  return one;
}

// Makes a network in FP16 one in FP32 between its inputs and outputs. That is done to the imported graph, whatever file
// it came of, for calibration, passes and kernels know codes and f32; a device that has kernels for FP16 gets it made
// of f32 again (runtime/half_precision.h). Networks that only cast from or to f16 stay.
absl::Status MakeSinglePrecision(LoadedGraph* loaded) {
  const int calls = runtime::CountHalfCalls(*loaded->graph);
  if (calls == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(loaded->graph, runtime::SinglePrecision(*loaded->graph));
  loaded->warnings.push_back(absl::StrCat(
      "the network is in FP16 and is computed in FP32 between its inputs and outputs: calls of f16: ", calls));
  return absl::OkStatus();
}

// Makes a network for a batch of any size one for a batch of 1; where it is for no other batch, or for none, all of it
// becomes a sample.
absl::Status MakeOneSample(LoadedGraph* loaded) {
  const auto batch = BatchOf(*loaded->graph);
  if (loaded->graph->placeholders().empty() || (batch.ok() && *batch == 1)) return batch.status();
  absl::Status reason = batch.status();
  if (batch.ok()) {
    auto one = WithOneSample(*loaded->graph, *batch);
    if (one.ok()) {
      loaded->graph = *std::move(one);
      return absl::OkStatus();
    }
    reason = Annotate(one.status(), absl::StrCat("with a batch of 1 in place of ", *batch));
  }
  loaded->warnings.push_back(
      absl::StrCat("a sample is a whole run, counted by a dimension in front of its inputs: ", reason.message()));
  return AddSampleDimension(loaded->graph.get());
}

}  // namespace

absl::StatusOr<LoadedGraph> LoadGraph(const std::string& path, const ir::OpRegistry& ops, const LoadOptions& options,
                                      std::vector<std::string>* external_files) {
  LoadedGraph loaded;
  onnx::LoadOptions onnx_options;
  onnx_options.shapes = options.shapes;
  onnx_options.sample_shapes = options.sample_shapes;
  onnx_options.constants = options.constants;
  onnx_options.outputs = options.outputs;
  if (options.max_memory_bytes > 0) onnx_options.max_memory_bytes = options.max_memory_bytes;
  onnx_options.allow_nonfinite = options.allow_nonfinite;
  onnx_options.warnings = &loaded.warnings;
  onnx_options.external_files = external_files;
  onnx_options.names = &loaded.names;
  const bool artifact = IsArtifact(path), ir = !artifact && absl::EndsWith(path, ".ir");
  if (artifact || ir) {
    if (!options.shapes.empty()) return UsageError(absl::StrCat(path, ": shapes are for .onnx files"));
    if (!options.constants.empty()) return UsageError(absl::StrCat(path, ": constant inputs are for .onnx files"));
    if (!options.outputs.empty()) return UsageError(absl::StrCat(path, ": chosen outputs are for .onnx files"));
  }
  if (artifact && options.bytes) {
    return UsageError(
        absl::StrCat(path, ": a compiled network's input stays as it is, want another file to take bytes"));
  }
  if (artifact) {
    ASSIGN_OR_RETURN(loaded, ReadArtifact(path, ops, onnx_options));
    RETURN_IF_ERROR(Annotate(CheckOutputs(*loaded.graph), path));
    return loaded;
  }
  if (ir) {
    if (external_files != nullptr) {
      external_files->push_back(absl::StrCat(absl::StripSuffix(path, ".ir"), ".safetensors"));
    }
    ASSIGN_OR_RETURN(loaded.graph, fx::Load(path, ops, onnx_options));
    RETURN_IF_ERROR(Annotate(CheckOutputs(*loaded.graph), path));
    for (const ir::Node* input : loaded.graph->placeholders()) loaded.names.inputs.push_back(input->name());
    for (const ir::Node* output : loaded.graph->output()->operands()) loaded.names.outputs.push_back(output->name());
  } else {
    ASSIGN_OR_RETURN(loaded.graph, onnx::Load(path, ops, onnx_options));
  }
  RETURN_IF_ERROR(Annotate(MakeSinglePrecision(&loaded), path));
  RETURN_IF_ERROR(Annotate(MakeOneSample(&loaded), path));
  if (options.bytes) RETURN_IF_ERROR(Annotate(TakeBytes(*options.bytes, loaded.graph.get()), path));
  MakeUnique(&loaded.names.outputs);
  return loaded;
}

absl::StatusOr<int64_t> BatchOf(const ir::Graph& graph) {
  const std::vector<ir::Node*> placeholders = graph.placeholders();
  if (placeholders.empty()) return absl::InvalidArgumentError("the model has no inputs, want at least one");
  const Shape& first = placeholders[0]->tensor_type().shape;
  for (const ir::Node* placeholder : placeholders) {
    const Shape& shape = placeholder->tensor_type().shape;
    if (shape.empty() || shape[0] != first[0]) {
      return absl::InvalidArgumentError(
          absl::StrCat("input %", placeholder->name(), " is ", ToString(placeholder->tensor_type()), " and input %",
                       placeholders[0]->name(), " ", ToString(placeholders[0]->tensor_type()),
                       ", want one batch size in dimension 0"));
    }
  }
  return first[0];
}

absl::StatusOr<std::unique_ptr<ir::Graph>> WithBatch(const ir::Graph& graph, int64_t batch) {
  std::unique_ptr<ir::Graph> copy = graph.Clone();
  if (batch == 0) return copy;
  ASSIGN_OR_RETURN(const int64_t own_batch, BatchOf(graph));
  if (own_batch != batch) {
    RETURN_IF_ERROR(Annotate(copy->SetBatch(batch), absl::StrCat("with a batch of ", batch)));
  }
  return copy;
}

absl::StatusOr<std::vector<Tensor>> SortInputs(std::map<std::string, Tensor> inputs,
                                               const std::vector<std::string>& names, const ir::Graph& graph) {
  const std::string all = absl::StrCat("\"", absl::StrJoin(names, "\", \""), "\"");
  for (const auto& [name, tensor] : inputs) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("found the array \"", name, "\", wanted the model's inputs: ", all));
  }
  const std::vector<ir::Node*> placeholders = graph.placeholders();
  std::vector<Tensor> sorted;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto it = inputs.find(names[i]);
    if (it == inputs.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("found no array \"", names[i], "\", wanted the model's inputs: ", all));
    }
    const Tensor& first = sorted.empty() ? it->second : sorted[0];
    const int64_t samples = first.rank() == 0 ? 0 : first.dim(0);
    RETURN_IF_ERROR(CheckInput(names[i], it->second.type(), placeholders[i]->tensor_type(), samples));
    sorted.push_back(std::move(it->second));
  }
  return sorted;
}

}  // namespace fuselage::compiler

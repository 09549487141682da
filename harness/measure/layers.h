// Layers: what each step of an executable costs, and how far each quantized layer is from FP32.
#ifndef FUSELAGE_HARNESS_MEASURE_LAYERS_H_
#define FUSELAGE_HARNESS_MEASURE_LAYERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/engine.h"
#include "harness/results.pb.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "runtime/executable.h"

namespace fuselage::harness {

// A graph, and where it runs.
struct PlacedGraph {
  const ir::Graph& graph;
  const compiler::EngineOptions& engine;
};

// SNR in dB of each quantized layer of `quantized` (an int8.* call other than quantize and dequantize) against the node
// of `baseline` with the same name, or with the name of its last source: both graphs run `inputs` with every such node
// as an output. A layer without a counterpart of its shape is left out.
absl::StatusOr<std::map<std::string, double>> LayerSnrs(const PlacedGraph& baseline, const PlacedGraph& quantized,
                                                        absl::Span<const Tensor> inputs,
                                                        const kernels::KernelRegistry& kernels,
                                                        runtime::ThreadPool* pool);

// Runs with the profile on: every step of the schedule with its median time.
absl::StatusOr<std::vector<Results::Layer>> ProfileLayers(runtime::Executable& executable,
                                                          absl::Span<const Tensor> inputs, int runs);

// Percent of a run that passes outside the kernels: between the steps, and in the joins that end the kernels' loops on
// `pool`, each at what an empty one costs. At least one run.
absl::StatusOr<double> RuntimeOverheadPercent(runtime::Executable& executable, runtime::ThreadPool& pool,
                                              absl::Span<const Tensor> inputs, int runs);

// Bytes that one run moves to and from memory if no cache helps: operands, results and weights of each step, each once.
int64_t CountedBytes(const runtime::Executable& executable);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_LAYERS_H_

// How far each quantized layer is from FP32, and how its ranges fit what runs through them.
#ifndef FUSELAGE_HARNESS_MEASURE_LAYER_ERRORS_H_
#define FUSELAGE_HARNESS_MEASURE_LAYER_ERRORS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/engine.h"
#include "harness/results.pb.h"
#include "ir/graph.h"
#include "kernels/core/registry.h"
#include "runtime/thread_pool.h"

namespace fuselage::harness {

// A graph, and where it runs.
struct PlacedGraph {
  const ir::Graph& graph;
  const compiler::EngineOptions& engine;
};

struct LayerError {
  double snr_db = 0;  // Errors of earlier layers included.
  Results::Quantization quantization;
};

struct LayerErrors {
  std::map<std::string, LayerError> layers;  // By the names of their nodes.
  absl::Status local;                        // Not OK: why no layer could be run alone.
};

// Compares each quantized layer of `quantized` (an int8.* call other than quantize and dequantize) with the node of
// `baseline` that has its name, or the name of its last source: both graphs run `inputs` with every such node as an
// output. Then each layer runs once more, alone: on the codes of the baseline's values. A layer without a
// counterpart of its shape is left out, and one of whose values only maxima are taken; one that reads a value without a
// counterpart has no local error.
absl::StatusOr<LayerErrors> MeasureLayerErrors(const PlacedGraph& baseline, const PlacedGraph& quantized,
                                               absl::Span<const Tensor> inputs, const kernels::KernelRegistry& kernels,
                                               runtime::ThreadPool* pool);

}  // namespace fuselage::harness

#endif  // FUSELAGE_HARNESS_MEASURE_LAYER_ERRORS_H_
